// A device of host memory whose source refuses when a test says so.
#pragma once
#include <memory>
#include <optional>

#include "ebb/allocator/fault_source.h"
#include "ebb/allocator/host_source.h"
#include "ebb/core/device/runtime.h"

namespace ebb::tests {

// All that these tests know of sources.
class FailingSource {
 public:
  FailingSource()
      : FailingSource(std::make_unique<memory::FaultInjectingSource>(
            std::make_unique<memory::HostSource>())) {}

  const Device& device() const noexcept { return device_; }
  // The n-th time from now that it is asked for memory, it refuses, once.
  void refuse_at(std::size_t n) noexcept { source_.fail_map_after(n); }
  // It gives out no more bytes than it has already.
  void refuse_more() noexcept { source_.bound(source_.mapped_bytes()); }
  void restore() noexcept {
    source_.fail_map_after(~std::size_t{0} / 2);
    source_.bound({});
  }
  // How often it was asked, and what it has given out.
  std::size_t requests() const noexcept { return source_.maps(); }
  std::size_t given_bytes() const noexcept { return source_.mapped_bytes(); }

 private:
  explicit FailingSource(std::unique_ptr<memory::FaultInjectingSource> source)
      : source_(*source), device_(make_device(std::move(source))) {}
  static Device make_device(std::unique_ptr<memory::FaultInjectingSource> source) {
    Runtime::Parts parts;
    parts.name = "failing";
    parts.profile = Device::cpu().runtime().profile();
    parts.profile.captures_programs = false;
    parts.backend = detail::make_cpu_backend();
    parts.capacity_bytes = source->device_memory().total;
    parts.source = std::move(source);
    return Runtime::make(std::move(parts));
  }

  memory::FaultInjectingSource& source_;
  const Device device_;
};

}  // namespace ebb::tests
