// Lets one allocation of a step fail.
#pragma once
#include "ebb/allocator/error.h"
#include "ebb/core/device/runtime.h"

namespace ebb::tests {

// Whether the step runs out of memory when its n-th allocation on the device fails, from 0.
template <class Step>
bool fails_at(std::size_t n, const Step& step, const Device& device = Device::cpu()) {
  memory::CachingAllocator& allocator = device.runtime().allocator();
  bool failed = false;
  allocator.fail_allocation_after(n);
  try {
    step();
  } catch (const OutOfMemory&) {
    failed = true;
  }
  allocator.fail_allocation_after(~std::size_t{0});
  return failed;
}

}  // namespace ebb::tests
