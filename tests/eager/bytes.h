// Allocated bytes of the CPU beyond those at the object's construction.
#pragma once
#include "ebb/allocator/peak_scope.h"
#include "ebb/core/device/runtime.h"

namespace ebb::tests {

class Bytes {
 public:
  explicit Bytes(const Device& device = Device::cpu())
      : allocator_(device.runtime().allocator()),
        before_(allocator_.allocated_bytes()),
        peak_(allocator_) {}
  std::size_t now() const { return allocator_.allocated_bytes() - before_; }
  std::size_t peak() const { return peak_.bytes() - before_; }
  std::size_t of(memory::Category category) const {
    return allocator_.stats().by_category[static_cast<std::size_t>(category)].current;
  }

 private:
  memory::CachingAllocator& allocator_;
  const std::size_t before_;
  const memory::PeakScope peak_;
};

}  // namespace ebb::tests
