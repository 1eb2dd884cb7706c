#include "ebb/allocator/detail/allocator_state.h"

#include <algorithm>

namespace ebb::memory::detail {

AllocatorState::AllocatorState(std::unique_ptr<MemorySource> memory_source, Profile device_profile)
    : source(std::move(memory_source)), profile(std::move(device_profile)) {
  profile.check();
  if (profile.page_bytes % source->page_bytes() != 0)
    throw Error("profile " + profile.name + ": page_bytes is " +
                std::to_string(profile.page_bytes) + ", no multiple of the source's " +
                std::to_string(source->page_bytes()));
}

// Memory that the device did not take back is left to the device.
AllocatorState::~AllocatorState() {
  for (const auto& [age, segment] : heap.segments())
    if (profile.grows) source->unreserve(segment.base, segment.bytes);
}

bool AllocatorState::admit(std::size_t bytes, PoolState* pool, Refusal& refusal) noexcept {
  const auto missing = [bytes](std::size_t reserved, std::size_t its_limit) {
    if (bytes <= its_limit && reserved <= its_limit - bytes) return std::size_t{0};
    return reserved + bytes - its_limit;
  };
  refusal.reserve_bytes = bytes;
  if (pool) {
    refusal.reason = OutOfMemory::Reason::pool_limit;
    refusal.missing_bytes = missing(pool->ledger.reserved(), pool->limit);
    if (refusal.missing_bytes > 0) return false;
  }
  refusal.reason = OutOfMemory::Reason::device_limit;
  refusal.missing_bytes = missing(ledger.reserved(), limit);
  if (refusal.missing_bytes > 0) return false;
  refusal.reason = OutOfMemory::Reason::device_refused;
  charge(bytes, pool);
  return true;
}

void AllocatorState::charge(std::size_t bytes, PoolState* pool) noexcept {
  ledger.reserve(bytes);
  if (!pool) return;
  pool->ledger.reserve(bytes);
  reserved_by_pools += bytes;
}

void AllocatorState::discharge(std::size_t bytes, PoolState* pool) noexcept {
  ledger.give_back(bytes);
  if (!pool) return;
  pool->ledger.give_back(bytes);
  reserved_by_pools -= bytes;
}

void AllocatorState::refund(std::size_t bytes, PoolState* pool) noexcept {
  ledger.unreserve(bytes);
  if (!pool) return;
  pool->ledger.unreserve(bytes);
  reserved_by_pools -= bytes;
}

void AllocatorState::record(EventKind kind, const Holding& holding) noexcept {
  if (recorder) recorder->add(kind, holding.base, holding.composition.split, holding.asked_by());
}

void AllocatorState::record(EventKind kind, const void* base, std::size_t bytes) noexcept {
  if (recorder && bytes > 0) recorder->add(kind, base, bytes, Category::temporary, {});
}

bool AllocatorState::fails_now() noexcept {
  if (!fail_after || (*fail_after)-- > 0) return false;
  fail_after.reset();
  set_special();
  return true;
}

std::size_t AllocatorState::cache_reserved() const noexcept {
  return ledger.reserved() - reserved_by_pools;
}

std::size_t AllocatorState::room_within(std::size_t most) const noexcept {
  most = profile.whole_pages(most);
  std::size_t used = ledger.reserved() - heap.free_bytes().in_pages;
  for (const PoolState* pool : pools) {
    if (pool->reserves_ahead()) continue;
    for (const auto& [age, holding] : pool->holdings)
      if (holding.presence.load(std::memory_order_relaxed) == Holding::Presence::resting)
        used -= holding.pages;
  }
  return most > used ? most - used : 0;
}

void AllocatorState::tell_passed(const Request& request) {
  std::vector<std::shared_ptr<Watcher>> passed;
  Pressure pressure;
  {
    const Guard guard(lock);
    if (watchers.sweep()) set_special();
    if (!watchers.exceeded_by(ledger.allocated())) return;
    passed = watchers.take_passed(ledger.allocated());
    pressure = {.requested_bytes = request.bytes,
                .allocated_bytes = ledger.allocated(),
                .reserved_bytes = ledger.reserved()};
  }
  Watchers::tell(passed, pressure);
}

// Computed from the capacity, so that a device and its twin give back equally, to the byte.
// Otherwise one of them would have room where the other has none.
std::size_t Relief::missing_bytes(const Refusal& refusal) const noexcept {
  using Reason = OutOfMemory::Reason;
  if (refusal.reason != Reason::device_refused && refusal.reason != Reason::addresses)
    return refusal.missing_bytes;
  const std::size_t capacity = allocator_.source->capacity_bytes();
  const std::size_t wanted = allocator_.ledger.published_reserved() + refusal.reserve_bytes;
  return wanted > capacity ? wanted - capacity : refusal.reserve_bytes;
}

bool Relief::find(const Refusal& refusal) {
  using Reason = OutOfMemory::Reason;
  if (refusal.reason == Reason::injected) return false;
  const bool by_pool = refusal.reason == Reason::pool_limit;
  const std::size_t bytes = std::max(missing_bytes(refusal), std::size_t{1});
  if (stage_ == Stage::preallocated) {
    stage_ = Stage::callbacks;
    const Guard mapping(allocator_.mapping);
    if (pool_ && !by_pool && allocator_.preallocated > 0 &&
        allocator_.trim(bytes).returned_bytes > 0) {
      return true;
    }
  }
  if (stage_ == Stage::callbacks) {
    stage_ = Stage::arenas;
    std::vector<std::shared_ptr<Watcher>> told;
    Pressure pressure{.requested_bytes = request_.bytes, .missing_bytes = missing_bytes(refusal)};
    {
      const Guard guard(allocator_.lock);
      told = allocator_.watchers.of_refusals();
      pressure.allocated_bytes = allocator_.ledger.allocated();
      pressure.reserved_bytes = allocator_.ledger.reserved();
    }
    if (Watchers::tell(told, pressure)) return true;
  }
  if (stage_ == Stage::arenas) {
    const Guard mapping(allocator_.mapping);
    if (allocator_.take_resting(bytes, by_pool ? pool_ : nullptr) > 0) return true;
    stage_ = Stage::cache;
  }
  if (by_pool) return false;
  if (stage_ == Stage::cache) {
    const Guard mapping(allocator_.mapping);
    if (allocator_.trim(bytes).returned_bytes > 0) return true;
    stage_ = Stage::search;
  }
  if (stage_ == Stage::search) {
    stage_ = Stage::capacity;
    return true;
  }
  if (stage_ == Stage::capacity && refusal.reason == Reason::device_refused) {
    stage_ = Stage::none;
    return allocator_.source->overdraw(allocator_.profile.in_pages(request_.bytes));
  }
  return false;
}

}  // namespace ebb::memory::detail
