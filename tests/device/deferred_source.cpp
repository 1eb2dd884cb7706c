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
constexpr std::size_t kRangeBytes = std::size_t{128} << 30;
// New memory holds NaNs up to here, since nobody may count on zeros; to touch more would take
// the machine's memory for what no test writes.
constexpr std::size_t kFilledBytes = std::size_t{32} << 20;

void* map_nothing(void* at, std::size_t bytes) noexcept {
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
      capacity_bytes_(std::min(capacity_bytes, kRangeBytes / 4)) {
  begin_ = number(map_nothing(nullptr, kRangeBytes));
  backing_ = number(map_nothing(nullptr, kRangeBytes));
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

void* DeferredMemory::reserve(std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (!find_gap(cursor_, bytes) && !find_gap(begin_ + page_bytes_, bytes)) return nullptr;
  const std::uintptr_t base = cursor_;
  try {
    reserved_.emplace(base, bytes);
  } catch (...) {
    return nullptr;
  }
  cursor_ += bytes + page_bytes_;
  return pointer(base);
}

void DeferredMemory::unreserve(void* base, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const auto range = reserved_.find(number(base));
  const auto piece = pieces_.lower_bound(number(base));
  if (range == reserved_.end() || range->second != bytes ||
      (piece != pieces_.end() && piece->first < number(base) + bytes))
    std::abort();
  reserved_.erase(range);
}

bool DeferredMemory::commit(void* at, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const std::uintptr_t begin = number(at), end = begin + bytes;
  auto range = reserved_.upper_bound(begin);
  if (range == reserved_.begin()) std::abort();
  --range;
  if (end > range->first + range->second) std::abort();
  auto piece = pieces_.upper_bound(begin);
  if (piece != pieces_.end() && piece->first < end) std::abort();
  if (piece != pieces_.begin() && std::prev(piece)->first + std::prev(piece)->second.bytes > begin)
    std::abort();
  if (bytes > capacity_bytes_ || committed_bytes_ > capacity_bytes_ - bytes) return false;
  std::byte* const backed = backing(at);
  if (::mmap(backed, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    return false;
  std::memset(backed, 0xFF, std::min(bytes, kFilledBytes));
  pieces_.emplace(begin, Piece{bytes, ++commits_});
  committed_bytes_ += bytes;
  return true;
}

// A piece that goes on across an address becomes two.
void DeferredMemory::split(std::uintptr_t at) {
  auto piece = pieces_.lower_bound(at);
  if (piece == pieces_.begin()) return;
  --piece;
  const std::size_t ahead = at - piece->first;
  if (ahead >= piece->second.bytes) return;
  pieces_.emplace(at, Piece{piece->second.bytes - ahead, piece->second.number});
  piece->second.bytes = ahead;
}

void DeferredMemory::decommit(void* at, std::size_t bytes) noexcept {
  {
    const std::lock_guard lock(calling_);
    if (before_decommit_) before_decommit_(at, bytes);
  }
  if (generation_of(at, bytes) == 0) std::abort();
  const std::lock_guard lock(mutex_);
  split(number(at));
  split(number(at) + bytes);
  pieces_.erase(pieces_.lower_bound(number(at)), pieces_.lower_bound(number(at) + bytes));
  map_nothing(backing(at), bytes);
  committed_bytes_ -= bytes;
}

std::uint64_t DeferredMemory::generation_of(const void* address, std::size_t bytes) const noexcept {
  const std::lock_guard lock(mutex_);
  std::uintptr_t at = number(address);
  const std::uintptr_t end = at + bytes;
  auto piece = pieces_.upper_bound(at);
  if (piece == pieces_.begin()) return 0;
  std::uint64_t newest = 0;
  for (--piece; piece != pieces_.end() && piece->first <= at; ++piece) {
    if (piece->first + piece->second.bytes < std::max(at, number(address) + 1)) return 0;
    newest = std::max(newest, piece->second.number);
    at = piece->first + piece->second.bytes;
    if (end <= at) return newest;
  }
  return 0;
}

bool DeferredMemory::overlaps(const void* address, std::size_t bytes) const noexcept {
  return number(address) < begin_ + kRangeBytes && number(address) + bytes > begin_;
}

std::byte* DeferredMemory::backing(const void* address) const noexcept {
  return static_cast<std::byte*>(pointer(number(address) - begin_ + backing_));
}

std::size_t DeferredMemory::committed_bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  return committed_bytes_;
}

void DeferredMemory::set_before_decommit(
    std::function<void(const void* base, std::size_t bytes)> call) {
  const std::lock_guard lock(calling_);
  before_decommit_ = std::move(call);
}

// Moves the cursor to the first gap at or behind `from` that holds a range and a page after it.
bool DeferredMemory::find_gap(std::uintptr_t from, std::size_t bytes) noexcept {
  for (auto next = reserved_.lower_bound(from);; ++next) {
    const std::uintptr_t end = next == reserved_.end() ? begin_ + kRangeBytes : next->first;
    if (end > from && end - from >= bytes + page_bytes_) {
      cursor_ = from;
      return true;
    }
    if (next == reserved_.end()) return false;
    from = next->first + next->second + page_bytes_;
  }
}

}  // namespace ebb::tests
