#pragma once
#include "ebb/allocator/caching_allocator.h"
#include "ebb/core/device/runtime.h"

namespace ebb::tests {

inline memory::CachingAllocator& allocator() { return Device::cpu().runtime().allocator(); }
inline std::size_t requested() { return allocator().stats().requested.current; }

}  // namespace ebb::tests
