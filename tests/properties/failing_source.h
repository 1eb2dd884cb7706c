// A device of host memory whose source refuses memory when a test says so.
#pragma once
#include <memory>
#include <optional>

#include "ebb/allocator/host_source.h"
#include "ebb/core/device/runtime.h"
#include "ebb/tests/fault_source.h"

namespace ebb::tests {

// The only class through which these tests use memory sources.
class FailingSource {
 public:
  FailingSource()
      : FailingSource(
            std::make_unique<FaultInjectingSource>(std::make_unique<memory::HostSource>())) {}

  const Device& device() const noexcept { return device_; }
  // Lets the source give out at most so many bytes more, until restore().
  void allow_more(std::size_t bytes) noexcept { source_.bound(source_.committed_bytes() + bytes); }
  void restore() noexcept { source_.bound({}); }

 private:
  explicit FailingSource(std::unique_ptr<FaultInjectingSource> source)
      : source_(*source), device_(make_device(std::move(source))) {}
  static Device make_device(std::unique_ptr<FaultInjectingSource> source) {
    Runtime::Parts parts;
    parts.name = "failing";
    const memory::Profile& tested = Device::cpu().runtime().profile();
    if (tested.kernels == memory::Kernels::cpu) parts.profile = tested;
    parts.profile.captures_programs = false;
    parts.backend = detail::make_cpu_backend();
    parts.source = std::move(source);
    return Runtime::make(std::move(parts));
  }

  FaultInjectingSource& source_;
  const Device device_;
};

}  // namespace ebb::tests
