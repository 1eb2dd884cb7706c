#pragma once
#include <memory>
#include <string>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/profile.h"
#include "ebb/core/device.h"
#include "ebb/core/kernel.h"
#include "ebb/core/reference.h"

namespace ebb {

struct OpDef;

// What stands behind a Device: its allocator, and which kernels and memory rules serve it. The CPU's
// lives as long as the process, a simulated one as long as its handles and tensors.
class Runtime final : public detail::Counted {
 public:
  static Device make_simulated(const memory::Profile& profile, std::size_t capacity_bytes);

  const std::string& name() const noexcept { return name_; }
  const memory::Profile& profile() const noexcept { return profile_; }
  bool is_simulated() const noexcept { return simulated_; }
  memory::CachingAllocator& allocator() noexcept { return *allocator_; }
  // Bytes of memory a simulated device stands for; the machine's own on a real one.
  std::size_t capacity_bytes() const noexcept { return capacity_bytes_; }
  // Whether what was asked of a simulated device stayed within its capacity; true on a real one.
  bool fits() const noexcept;
  // The kernel and memory rule of an operator on this device. Throws Error where it has none.
  const DeviceKernel& kernel(const OpDef& op) const;

 private:
  friend class Device;
  Runtime(std::string name, memory::Profile profile, bool simulated,
          std::unique_ptr<memory::MemorySource> source, std::size_t capacity_bytes);

  const std::string name_;
  const memory::Profile profile_;
  const bool simulated_;
  const std::size_t capacity_bytes_;
  const memory::MemorySource* source_;
  std::unique_ptr<memory::CachingAllocator> allocator_;
};

}  // namespace ebb
