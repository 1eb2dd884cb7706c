// Memory in transit between the device and pools.
#include <algorithm>

#include "ebb/allocator/detail/allocator_state.h"

namespace ebb::memory::detail {

bool AllocatorState::give_back(const Holding& holding, std::size_t offset,
                               std::size_t bytes) noexcept {
  return bytes == 0 || (holding.addresses > 0 ? source->decommit(holding.base + offset, bytes)
                                              : source->unmap(holding.base, bytes));
}

void AllocatorState::lose_segment(PoolState& pool) noexcept {
  --pool.segments;
  --segments_of_pools;
}

bool AllocatorState::take_away(PoolState& pool, Holding& holding, Holding::Presence then) noexcept {
  if (!give_back(holding, 0, holding.pages)) return false;
  const Guard guard(lock);
  uncount(pool, holding);
  watchers.sink_to(ledger.allocated());
  record(EventKind::unmap, holding.base, holding.pages);
  discharge(holding.pages, &pool);
  if (holding.pages > 0) lose_segment(pool);
  holding.presence.store(then, std::memory_order_release);
  return true;
}

bool AllocatorState::shrink(PoolState& pool, Holding& holding, std::size_t pages) noexcept {
  const std::size_t less = holding.pages - pages;
  if (less == 0) return true;
  if (!give_back(holding, pages, less)) return false;
  const Guard guard(lock);
  record(EventKind::unmap, holding.base + pages, less);
  discharge(less, &pool);
  holding.pages = pages;
  if (pages == 0) lose_segment(pool);
  return true;
}

bool AllocatorState::drop(PoolState& pool, Holding& holding, std::size_t& returned) noexcept {
  const bool was_counted = holding.is_counted();
  const bool was_stuck = holding.presence == Holding::Presence::stuck;
  std::size_t left = was_counted || was_stuck ? holding.pages : 0;
  const bool had_pages = left > 0;
  if (was_stuck) refused_by_device -= left;
  holding.is_busy = true;
  {
    const Guard guard(lock);
    if (was_counted) uncount(pool, holding);
    watchers.sink_to(ledger.allocated());
    holding.presence.store(Holding::Presence::stuck, std::memory_order_relaxed);
  }
  while (left > 0) {
    const std::size_t piece = holding.addresses > 0 ? std::min(left, kMostAtOnce) : left;
    if (!give_back(holding, left - piece, piece)) break;
    left -= piece;
    returned += piece;
    {
      const Guard guard(lock);
      record(EventKind::unmap, holding.base + left, piece);
      discharge(piece, &pool);
    }
    if (left > 0) {
      mapping.unlock();  // lets waiting threads in
      mapping.lock();
    }
  }
  holding.is_busy = false;
  refused_by_device += left;
  {
    const Guard guard(lock);
    holding.pages = left;
    if (had_pages && left == 0) lose_segment(pool);
  }
  if (left > 0) return false;
  if (holding.addresses > 0) source->unreserve(holding.base, holding.addresses);
  return true;
}

// Subtracts a block from the allocated bytes of its pool and of the device.
void AllocatorState::uncount(PoolState& pool, const Holding& holding) noexcept {
  record(EventKind::free, holding);
  for (Ledger* each : {&pool.ledger, &ledger})
    each->remove(holding.requested_bytes(), holding.bytes(), holding.composition.split);
}

void AllocatorState::count(PoolState& pool, const Holding& holding) noexcept {
  for (Ledger* each : {&pool.ledger, &ledger})
    each->add(holding.requested_bytes(), holding.bytes(), holding.composition.split);
  record(EventKind::allocate, holding);
}

bool AllocatorState::commit_pages(PoolState& pool, Holding& holding, std::size_t had,
                                  std::size_t bytes, Refusal& refusal) noexcept {
  if (bytes == had) return true;
  const std::size_t more = bytes - had;
  const std::size_t cushion = pool.cushion.pages;
  Refusal ignored;
  if (cushion > 0) set_cushion(pool, cushion - std::min(cushion, more), ignored);
  const bool is_admitted = locked(lock, [&] {
    if (cushion - pool.cushion.pages < more) return admit(more, &pool, refusal);
    charge(more, &pool);  // reserved already, so limits do not matter
    refusal = {.reserve_bytes = more};
    return true;
  });
  if (is_admitted) {
    bool is_committed = false;
    if (holding.addresses > 0) {
      is_committed = source->commit(holding.base + had, more);
    } else if (void* base = source->map(more)) {
      holding.base = static_cast<std::byte*>(base);
      is_committed = true;
    }
    const Guard guard(lock);
    if (is_committed) {
      record(EventKind::map, holding.base + had, more);
      if (had == 0) {
        ++pool.segments;
        ++segments_of_pools;
      }
      return true;
    }
    refund(more, &pool);
  }
  if (cushion > 0) set_cushion(pool, cushion, ignored);
  return false;
}

bool AllocatorState::set_cushion(PoolState& pool, std::size_t pages, Refusal& refusal) noexcept {
  Cushion& cushion = pool.cushion;
  const auto resize = [&] {  // the cushion counts as a segment while it has memory
    if ((cushion.pages > 0) != (pages > 0)) {
      pages > 0 ? ++pool.segments : --pool.segments;
      pages > 0 ? ++segments_of_pools : --segments_of_pools;
    }
    cushion.pages = pages;
  };
  if (pages < cushion.pages) {
    if (!source->decommit(cushion.base + pages, cushion.pages - pages)) return false;
    const Guard guard(lock);
    record(EventKind::unmap, cushion.base + pages, cushion.pages - pages);
    discharge(cushion.pages - pages, &pool);
    resize();
  } else if (pages > cushion.pages) {
    const std::size_t more = pages - cushion.pages;
    if (!locked(lock, [&] { return admit(more, &pool, refusal); })) return false;
    const bool is_committed = source->commit(cushion.base + cushion.pages, more);
    const Guard guard(lock);
    if (!is_committed) {
      refund(more, &pool);
      return false;
    }
    record(EventKind::map, cushion.base + cushion.pages, more);
    resize();
  }
  return true;
}

// No other thread gets between, under `mapping`: the memory that goes back can be had again, unless
// another process takes it.
bool AllocatorState::move_cushion(PoolState& pool, std::size_t addresses,
                                  Refusal& refusal) noexcept {
  Cushion& cushion = pool.cushion;
  const Cushion before = cushion;
  auto* const base = static_cast<std::byte*>(source->reserve(addresses));
  Refusal ignored;
  if (!base || !set_cushion(pool, 0, ignored)) {
    if (base) source->unreserve(base, addresses);
    return false;
  }
  cushion.base = base;
  cushion.addresses = addresses;
  if (!set_cushion(pool, before.pages, refusal)) {
    cushion.base = before.base;
    cushion.addresses = before.addresses;
    set_cushion(pool, before.pages, ignored);
    source->unreserve(base, addresses);
    return false;
  }
  if (before.addresses > 0) source->unreserve(before.base, before.addresses);
  return true;
}

void AllocatorState::refill_cushion(PoolState& pool) noexcept {
  const Cushion& cushion = pool.cushion;
  std::size_t more = 0;
  {
    const Guard guard(lock);
    const std::size_t reserved = pool.ledger.reserved();
    if (pool.suspended || reserved >= cushion.target) return;
    const auto room = [](std::size_t its_limit, std::size_t used) {
      return its_limit > used ? its_limit - used : 0;
    };
    more = std::min({cushion.target - reserved, room(pool.limit, reserved),
                     room(limit, ledger.reserved()), cushion.addresses - cushion.pages});
  }
  Refusal ignored;
  set_cushion(pool, cushion.pages + profile.whole_pages(more), ignored);
}

namespace {

// Finds the first resting block of at least this age and marks it as away.
Holding* take_first_resting(PoolState& pool, std::uint64_t age) noexcept {
  for (auto at = pool.holdings.lower_bound(age); at != pool.holdings.end(); ++at) {
    Holding& holding = at->second;
    auto resting = Holding::Presence::resting;
    if (holding.pages > 0 &&
        holding.presence.compare_exchange_strong(
            resting, Holding::Presence::away, std::memory_order_acquire, std::memory_order_relaxed))
      return &holding;
  }
  return nullptr;
}

}  // namespace

// One pass suffices: under `mapping` no pool and no block disappears, and new ones come last.
std::size_t AllocatorState::take_resting(std::size_t bytes, PoolState* only_of) noexcept {
  std::size_t taken = take_refused(bytes, only_of);
  std::uint64_t age = 0;
  for (std::size_t at = 0; taken < bytes;) {
    PoolState* of = nullptr;
    Holding* found = nullptr;
    {
      const Guard guard(lock);
      for (; at < pools.size(); ++at, age = 0) {
        of = pools[at];
        if (only_of ? of != only_of : of->reserves_ahead()) continue;
        found = take_first_resting(*of, age);
        if (found) break;
      }
    }
    if (!found) break;
    age = found->age + 1;
    if (take_away(*of, *found, Holding::Presence::away))
      taken += found->pages;
    else
      found->presence.store(Holding::Presence::resting, std::memory_order_release);
  }
  return taken;
}

std::size_t AllocatorState::take_refused(std::size_t bytes, PoolState* only_of) noexcept {
  std::size_t taken = 0;
  for (std::size_t at = 0; refused_by_device > 0 && taken < bytes; ++at) {
    PoolState* const of = locked(lock, [&] { return at < pools.size() ? pools[at] : nullptr; });
    if (!of) break;
    if (only_of && of != only_of) continue;
    for (auto each = of->holdings.begin(); each != of->holdings.end() && taken < bytes;) {
      Holding& holding = each->second;
      const std::size_t pages = holding.pages;
      if (holding.presence != Holding::Presence::stuck || holding.is_busy ||
          !shrink(*of, holding, 0)) {
        ++each;
        continue;
      }
      if (holding.addresses > 0) source->unreserve(holding.base, holding.addresses);
      refused_by_device -= pages;
      taken += pages;
      const Guard guard(lock);
      each = of->holdings.erase(each);
    }
  }
  return taken;
}

}  // namespace ebb::memory::detail
