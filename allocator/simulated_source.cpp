#include "ebb/allocator/simulated_source.h"

#include <algorithm>

namespace ebb::memory {

void* SimulatedSource::reserve(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (!find_gap(cursor_, bytes) && !find_gap(kBegin, bytes)) return nullptr;
  try {
    reserved_.emplace(cursor_, bytes);
  } catch (...) {
    return nullptr;
  }
  void* base = reinterpret_cast<void*>(cursor_);
  cursor_ += bytes;
  return base;
}

void SimulatedSource::unreserve(void* base, std::size_t /*bytes*/) noexcept {
  const std::lock_guard lock(mutex_);
  reserved_.erase(reinterpret_cast<std::uintptr_t>(base));
}

bool SimulatedSource::commit(void* /*at*/, std::size_t bytes) noexcept {
  const std::size_t before = committed_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes <= capacity_bytes_ && before <= capacity_bytes_ - bytes) return true;
  const std::size_t beyond = bytes - (capacity_bytes_ - std::min(before, capacity_bytes_));
  std::size_t may = may_overdraw_.load(std::memory_order_relaxed);
  while (beyond <= may) {
    if (!may_overdraw_.compare_exchange_weak(may, may - beyond, std::memory_order_relaxed))
      continue;
    fits_.store(false, std::memory_order_relaxed);
    return true;
  }
  committed_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

bool SimulatedSource::decommit(void* /*at*/, std::size_t bytes) noexcept {
  committed_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return true;
}

bool SimulatedSource::overdraw(std::size_t bytes) noexcept {
  may_overdraw_.store(bytes, std::memory_order_relaxed);
  return true;
}

DeviceMemory SimulatedSource::device_memory() const noexcept {
  return {.total = capacity_bytes_,
          .free = capacity_bytes_ - std::min(capacity_bytes_, committed_bytes())};
}

// Moves the cursor to the first gap at or behind `from` that is wide enough. The cursor runs
// through the whole address range before it starts again, so searches stay short.
bool SimulatedSource::find_gap(std::uintptr_t from, std::size_t bytes) noexcept {
  for (auto next = reserved_.lower_bound(from);; ++next) {
    const std::uintptr_t end = next == reserved_.end() ? kEnd : next->first;
    if (end - from >= bytes) {
      cursor_ = from;
      return true;
    }
    if (next == reserved_.end()) return false;
    from = next->first + next->second;
  }
}

}  // namespace ebb::memory
