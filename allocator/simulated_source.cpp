#include "ebb/allocator/simulated_source.h"

#include <algorithm>

namespace ebb::memory {

void* SimulatedSource::map(std::size_t bytes) noexcept {
  if (!find_gap(cursor_, bytes) && !find_gap(kBegin, bytes)) return nullptr;
  try {
    mapped_.emplace(cursor_, bytes);
  } catch (...) {
    return nullptr;
  }
  void* base = reinterpret_cast<void*>(cursor_);
  cursor_ += bytes;
  mapped_bytes_.store(mapped_bytes() + bytes, std::memory_order_relaxed);
  most_mapped_bytes_.store(std::max(most_mapped_bytes(), mapped_bytes()),
                           std::memory_order_relaxed);
  return base;
}

void SimulatedSource::unmap(void* base, std::size_t bytes) noexcept {
  mapped_.erase(reinterpret_cast<std::uintptr_t>(base));
  mapped_bytes_.store(mapped_bytes() - bytes, std::memory_order_relaxed);
}

DeviceMemory SimulatedSource::device_memory() const noexcept {
  return {.total = capacity_bytes_,
          .free = capacity_bytes_ - std::min(capacity_bytes_, mapped_bytes())};
}

// Moves the cursor to the first gap at or behind `from` that is wide enough. The cursor runs
// through the whole address range before it starts again, so the search is short however often one
// maps.
bool SimulatedSource::find_gap(std::uintptr_t from, std::size_t bytes) noexcept {
  for (auto next = mapped_.lower_bound(from);; ++next) {
    const std::uintptr_t end = next == mapped_.end() ? kEnd : next->first;
    if (end - from >= bytes) {
      cursor_ = from;
      return true;
    }
    if (next == mapped_.end()) return false;
    from = next->first + next->second;
  }
}

}  // namespace ebb::memory
