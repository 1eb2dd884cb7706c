#include "ebb/tests/device/deferred_source.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "ebb/allocator/error.h"

namespace ebb::tests {
namespace {

// Of each range: many times what tests use, and little enough for the sanitizers' address spaces.
constexpr std::size_t kRangeBytes = std::size_t{64} << 30;
// A new segment holds NaNs up to here, since nobody may count on zeros; to touch more would take
// the machine's memory for what no test writes.
constexpr std::size_t kFilledBytes = std::size_t{32} << 20;

// Between segments as long as there are addresses enough: what a segment may grow into.
constexpr std::size_t kGapBytes = std::size_t{1} << 20;

void* reserve(void* at, std::size_t bytes) noexcept {
  const int fixed = at ? MAP_FIXED : 0;
  void* base =
      ::mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
  return base == MAP_FAILED ? nullptr : base;
}

std::uintptr_t number(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}
void* pointer(std::uintptr_t address) noexcept { return reinterpret_cast<void*>(address); }

}  // namespace

DeferredMemory::DeferredMemory(std::size_t capacity_bytes)
    : page_bytes_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
      capacity_bytes_(std::min(capacity_bytes, kRangeBytes / 2)) {
  begin_ = number(reserve(nullptr, kRangeBytes));
  backing_ = number(reserve(nullptr, kRangeBytes));
  if (begin_ == 0 || backing_ == 0) {
    if (begin_) ::munmap(pointer(begin_), kRangeBytes);
    throw Error("the address space has no room for a deferred device");
  }
  cursor_ = begin_ + page_bytes_;
}

DeferredMemory::~DeferredMemory() {
  ::munmap(pointer(begin_), kRangeBytes);
  ::munmap(pointer(backing_), kRangeBytes);
}

void* DeferredMemory::map(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (bytes > capacity_bytes_ - mapped_bytes_) return nullptr;
  if (!find_gap(cursor_, bytes) && !find_gap(begin_ + page_bytes_, bytes)) return nullptr;
  const std::uintptr_t base = cursor_;
  try {
    live_.emplace(base, Segment{bytes, segments_ + 1});
  } catch (...) {
    return nullptr;
  }
  if (!back(base, bytes)) {
    live_.erase(base);
    return nullptr;
  }
  ++segments_;
  mapped_bytes_ += bytes;
  cursor_ += bytes + kGapBytes;
  return pointer(base);
}

bool DeferredMemory::grow(void* base, std::size_t bytes, std::size_t new_bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const auto segment = live_.find(number(base));
  if (segment == live_.end() || segment->second.bytes != bytes || new_bytes < bytes) std::abort();
  const auto next = std::next(segment);
  const std::uintptr_t end = next == live_.end() ? begin_ + kRangeBytes : next->first;
  const std::size_t more = new_bytes - bytes;
  if (end - number(base) < new_bytes + page_bytes_ || more > capacity_bytes_ - mapped_bytes_ ||
      !back(number(base) + bytes, more))
    return false;
  segment->second.bytes = new_bytes;
  mapped_bytes_ += more;
  cursor_ = std::max(cursor_, number(base) + new_bytes + page_bytes_);
  return true;
}

// Puts memory behind addresses that were given out.
bool DeferredMemory::back(std::uintptr_t begin, std::size_t bytes) noexcept {
  std::byte* const backed = backing(pointer(begin));
  if (::mmap(backed, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    return false;
  std::memset(backed, 0xFF, std::min(bytes, kFilledBytes));
  return true;
}

void DeferredMemory::unmap(void* base, std::size_t bytes) noexcept {
  {
    const std::lock_guard lock(calling_);
    if (before_unmap_) before_unmap_(base, bytes);
  }
  const std::lock_guard lock(mutex_);
  const auto segment = live_.find(number(base));
  if (segment == live_.end() || segment->second.bytes != bytes) std::abort();  // never handed out
  reserve(backing(base), bytes);
  mapped_bytes_ -= bytes;
  live_.erase(segment);
}

std::uint64_t DeferredMemory::segment_of(const void* address, std::size_t bytes) const noexcept {
  const std::lock_guard lock(mutex_);
  auto after = live_.upper_bound(number(address));
  if (after == live_.begin()) return 0;
  const auto& [base, segment] = *--after;
  const std::size_t offset = number(address) - base;
  return offset <= segment.bytes && bytes <= segment.bytes - offset ? segment.number : 0;
}

bool DeferredMemory::overlaps(const void* address, std::size_t bytes) const noexcept {
  return number(address) < begin_ + kRangeBytes && number(address) + bytes > begin_;
}

std::byte* DeferredMemory::backing(const void* address) const noexcept {
  return static_cast<std::byte*>(pointer(number(address) - begin_ + backing_));
}

std::size_t DeferredMemory::mapped_bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  return mapped_bytes_;
}

void DeferredMemory::set_before_unmap(
    std::function<void(const void* base, std::size_t bytes)> call) {
  const std::lock_guard lock(calling_);
  before_unmap_ = std::move(call);
}

// Moves the cursor to the first gap at or behind `from` that holds a segment and a page after it.
bool DeferredMemory::find_gap(std::uintptr_t from, std::size_t bytes) noexcept {
  for (auto next = live_.lower_bound(from);; ++next) {
    const std::uintptr_t end = next == live_.end() ? begin_ + kRangeBytes : next->first;
    if (end > from && end - from >= bytes + page_bytes_) {
      cursor_ = from;
      return true;
    }
    if (next == live_.end()) return false;
    from = next->first + next->second.bytes + page_bytes_;
  }
}

}  // namespace ebb::tests
