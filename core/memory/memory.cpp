#include "ebb/core/memory/memory.h"

#include "ebb/core/device/runtime.h"

namespace ebb {

namespace memory {

namespace {
CachingAllocator& allocator_of(const Device& device) noexcept {
  return device.runtime().allocator();
}
}  // namespace

Stats stats(const Device& device) { return allocator_of(device).stats(); }

void set_limit(const Device& device, std::optional<std::size_t> reserved_bytes) {
  allocator_of(device).set_limit(reserved_bytes);
}

ReleaseReport release_cached(const Device& device) { return allocator_of(device).release_cached(); }

void reset_peaks(const Device& device) { allocator_of(device).reset_peaks(); }

std::vector<Holder> holders(const Device& device, std::size_t most) {
  return allocator_of(device).holders(most);
}

}  // namespace memory

memory::Ledger& ledger_of(const Device& device) noexcept {
  return ledger_of(device.runtime().allocator());
}

}  // namespace ebb
