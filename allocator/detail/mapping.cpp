// Memory on its way between the device and an allocator.
#include <algorithm>
#include <utility>

#include "ebb/allocator/detail/shared.h"

namespace ebb::memory::detail {

namespace {
// At most so much is on its way at a time, so that whoever else needs the device gets his turn.
constexpr std::size_t kMostAtOnce = std::size_t{64} << 20;
}  // namespace

BlockNode* Shared::grow_cache(const Request& request, Refusal& refusal) {
  if (!profile.grows) return map_segment(request, refusal);
  const std::size_t bytes = profile.rounded(request.bytes);
  for (bool with_step = true;;) {
    Heap::Row row;
    {
      const Guard guard(lock);
      if (BlockNode* node = heap.take(bytes)) return serve(node, request);
      row = heap.find_row(bytes);
      if (row.first) {
        heap.claim(row, with_step ? row.with_step : row.bytes);
        if (!admit(row.bytes, nullptr, refusal)) {
          heap.abandon(row);
          if (!std::exchange(with_step, false)) return nullptr;
          continue;
        }
      }
    }
    if (!row.first) {
      if (adopt_addresses(bytes)) continue;
      refusal = {.reserve_bytes = profile.in_pages(bytes)};
      return nullptr;
    }
    std::size_t kept = 0;
    const bool committed = commit_row(row, kept);
    const Guard guard(lock);
    if (committed) {
      for (const BlockNode* node = row.first; recorder; node = node->after) {
        if (!node->has_memory) record(EventKind::map, node->data(), node->bytes());
        if (node == row.last) break;
      }
      return serve(heap.finish(row, bytes), request);
    }
    heap.abandon(row);
    discharge(row.bytes - kept, nullptr);
    refusal = {.reserve_bytes = row.bytes - kept};
    if (!std::exchange(with_step, false)) return nullptr;
  }
}

BlockNode* Shared::serve(BlockNode* node, const Request& request) noexcept {
  node->serve(request);
  ledger.add(request.bytes, node->bytes(), request.category);
  record(EventKind::allocate, *node);
  return node;
}

// Another range for the cache: as many addresses as the profile wants, or as there are.
bool Shared::adopt_addresses(std::size_t bytes) {
  std::size_t range = std::max(profile.range_bytes, profile.in_pages(bytes));
  void* base = source->reserve(range);
  while (!base && range / 2 >= profile.in_pages(bytes)) {
    range = profile.in_pages(range / 2);
    base = source->reserve(range);
  }
  // Where there are few addresses others need them too.
  if (base && range < profile.range_bytes && range / 8 >= profile.in_pages(bytes)) {
    source->unreserve(base, range);
    range = profile.in_pages(range / 8);
    base = source->reserve(range);
  }
  if (!base) return false;
  try {
    const Guard guard(lock);
    heap.adopt_addresses(base, range, bytes);
  } catch (...) {
    source->unreserve(base, range);
    throw;
  }
  return true;
}

// All of its holes, or none; `kept` is of those that the device does not take back, which are free.
bool Shared::commit_row(const Heap::Row& row, std::size_t& kept) noexcept {
  for (BlockNode* node = row.first;; node = node->after) {
    if (!node->has_memory && !source->commit(node->data(), node->bytes())) {
      for (BlockNode* done = row.first; done != node; done = done->after) {
        if (done->has_memory || source->decommit(done->data(), done->bytes())) continue;
        done->has_memory = true;
        kept += done->bytes();
        const Guard guard(lock);
        record(EventKind::map, done->data(), done->bytes());
      }
      return false;
    }
    if (node == row.last) return true;
  }
}

BlockNode* Shared::map_segment(const Request& request, Refusal& refusal) {
  const std::size_t bytes = profile.rounded(request.bytes);
  for (const std::size_t segment_bytes : {profile.segment_bytes(bytes), profile.in_pages(bytes)}) {
    {
      const Guard guard(lock);
      if (BlockNode* node = heap.take(bytes)) return serve(node, request);
      if (!admit(segment_bytes, nullptr, refusal)) continue;
    }
    void* base = source->map(segment_bytes);
    const Guard guard(lock);
    if (base) {
      try {
        heap.adopt(base, segment_bytes, bytes);
        record(EventKind::map, base, segment_bytes);
        return serve(heap.take(bytes), request);
      } catch (...) {
        source->unmap(base, segment_bytes);
        discharge(segment_bytes, nullptr);
        throw;
      }
    }
    discharge(segment_bytes, nullptr);
  }
  return nullptr;
}

// In one piece, as memory that was freed.
bool Shared::preallocate(std::size_t bytes, Refusal& refusal) {
  const std::size_t target = profile.in_pages(bytes);
  for (;;) {
    BlockNode* node = nullptr;
    std::size_t more = 0;
    {
      const Guard guard(lock);
      const std::size_t reserved = cache_reserved();
      if (reserved >= target) break;
      more = target - reserved;
      node = heap.claim_hole(more);
      if (node && !admit(more, nullptr, refusal)) {
        heap.settle(node);
        return false;
      }
    }
    if (!node) {
      if (adopt_addresses(std::max(more, profile.small_request + 1))) continue;
      refusal = {.reserve_bytes = more};
      return false;
    }
    const bool is_committed = source->commit(node->data(), more);
    const Guard guard(lock);
    if (is_committed)
      record(EventKind::map, node->data(), more);
    else
      discharge(more, nullptr);
    node->has_memory = is_committed;
    node->set_last_user(nullptr);
    heap.settle(node);
    if (!is_committed) return false;
    break;
  }
  preallocated = target;
  return true;
}

void Shared::refill_preallocated() noexcept {
  if (preallocated == 0) return;
  const std::size_t target = preallocated;
  std::size_t most = 0;
  {
    const Guard guard(lock);
    const std::size_t pools_have = ledger.reserved() - cache_reserved();
    most = std::min(limit, source->capacity_bytes());
    most = (most - std::min(most, pools_have)) / profile.page_bytes * profile.page_bytes;
  }
  try {
    Refusal ignored;
    preallocate(std::min(target, most), ignored);
  } catch (...) {  // NOLINT(bugprone-empty-catch): it is as full as it can be
  }
  preallocated = target;
}

ReleaseReport Shared::trim(std::size_t bytes) noexcept {
  if (!profile.grows) return trim_segments(bytes);
  ReleaseReport report;
  while (report.returned_bytes < bytes) {
    BlockNode* claimed = nullptr;
    {
      const Guard guard(lock);
      claimed = heap.claim_pages(std::min(bytes - report.returned_bytes, kMostAtOnce));
    }
    if (!claimed) break;
    std::size_t returned = 0;
    for (BlockNode* node = claimed; node; node = node->chain) {
      node->has_memory = !source->decommit(node->data(), node->bytes());
      (node->has_memory ? report.refused_bytes : returned) += node->bytes();
    }
    {
      const Guard guard(lock);
      for (BlockNode *node = claimed, *next = nullptr; node; node = next) {
        next = node->chain;
        if (!node->has_memory) record(EventKind::unmap, node->data(), node->bytes());
        heap.settle(node);
      }
      discharge(returned, nullptr);
    }
    report.returned_bytes += returned;
    if (report.refused_bytes > 0) break;
    mapping.unlock();  // for whoever waits
    mapping.lock();
  }
  drop_empty();
  return report;
}

// Ranges without any memory: their addresses go back too.
void Shared::drop_empty() noexcept {
  for (;;) {
    Segment empty;
    {
      const Guard guard(lock);
      Segments& segments = heap.segments();
      const auto found = std::find_if(segments.begin(), segments.end(), [](const auto& each) {
        return each.second.is_idle() && !each.second.first->has_memory;
      });
      if (found == segments.end()) return;
      empty = found->second;
      heap.drop(found);
    }
    source->unreserve(empty.base, empty.bytes);
  }
}

// Whole ones, oldest first.
ReleaseReport Shared::trim_segments(std::size_t bytes) noexcept {
  ReleaseReport report;
  const Guard guard(lock);
  Segments& segments = heap.segments();
  for (auto at = segments.begin(); at != segments.end() && report.returned_bytes < bytes;) {
    const Segment segment = at->second;
    if (!segment.is_idle()) {
      ++at;
    } else if (!source->unmap(segment.base, segment.bytes)) {
      report.refused_bytes += segment.bytes;
      ++at;
    } else {
      at = heap.drop(at);
      record(EventKind::unmap, segment.base, segment.bytes);
      discharge(segment.bytes, nullptr);
      report.returned_bytes += segment.bytes;
    }
  }
  return report;
}

bool Shared::take_away(PoolState& pool, Holding& holding, Holding::Presence then) noexcept {
  const bool is_gone =
      holding.pages == 0 || (holding.addresses > 0 ? source->decommit(holding.base, holding.pages)
                                                   : source->unmap(holding.base, holding.pages));
  if (!is_gone) return false;
  const Guard guard(lock);
  uncount(pool, holding);
  watchers.sink_to(ledger.allocated());
  record(EventKind::unmap, holding.base, holding.pages);
  discharge(holding.pages, &pool);
  if (holding.pages > 0) {
    --pool.segments;
    --segments_of_pools;
  }
  holding.presence.store(then, std::memory_order_release);
  return true;
}

bool Shared::drop(PoolState& pool, Holding& holding) noexcept {
  const bool has_memory = holding.presence != Holding::Presence::away &&
                          holding.presence != Holding::Presence::suspended;
  std::size_t left = has_memory ? holding.pages : 0;
  const bool had_pages = left > 0;
  holding.is_closing = true;
  {
    const Guard guard(lock);
    if (has_memory && holding.presence != Holding::Presence::stuck) uncount(pool, holding);
    watchers.sink_to(ledger.allocated());
    holding.presence.store(Holding::Presence::stuck, std::memory_order_relaxed);
  }
  while (left > 0) {
    const std::size_t piece = holding.addresses > 0 ? std::min(left, kMostAtOnce) : left;
    if (!(holding.addresses > 0 ? source->decommit(holding.base + left - piece, piece)
                                : source->unmap(holding.base, piece)))
      break;
    left -= piece;
    {
      const Guard guard(lock);
      record(EventKind::unmap, holding.base + left, piece);
      discharge(piece, &pool);
    }
    if (left > 0) {
      mapping.unlock();  // for whoever waits
      mapping.lock();
    }
  }
  holding.is_closing = false;
  {
    const Guard guard(lock);
    holding.pages = left;
    if (had_pages && left == 0) {
      --pool.segments;
      --segments_of_pools;
    }
  }
  if (left > 0) return false;
  if (holding.addresses > 0) source->unreserve(holding.base, holding.addresses);
  return true;
}

// Of what its pool and the device have allocated.
void Shared::uncount(PoolState& pool, const Holding& holding) noexcept {
  record(EventKind::free, holding);
  for (Ledger* each : {&pool.ledger, &ledger})
    each->remove(holding.requested_bytes(), holding.bytes(), holding.composition.split);
}

void Shared::count(PoolState& pool, const Holding& holding) noexcept {
  for (Ledger* each : {&pool.ledger, &ledger})
    each->add(holding.requested_bytes(), holding.bytes(), holding.composition.split);
  record(EventKind::allocate, holding);
}

bool Shared::commit_pages(PoolState& pool, Holding& holding, std::size_t had, std::size_t bytes,
                          Refusal& refusal) noexcept {
  if (bytes == had) return true;
  const std::size_t more = bytes - had;
  const std::size_t cushion = pool.cushion.pages;
  Refusal ignored;
  if (cushion > 0) set_cushion(pool, cushion - std::min(cushion, more), ignored);
  bool is_admitted = false;
  {
    const Guard guard(lock);
    if (cushion - pool.cushion.pages >= more) {  // reserved already, whatever the limits are now
      charge(more, &pool);
      refusal = {.reserve_bytes = more};
      is_admitted = true;
    } else {
      is_admitted = admit(more, &pool, refusal);
    }
  }
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
    discharge(more, &pool);
  }
  if (cushion > 0) set_cushion(pool, cushion, ignored);
  return false;
}

bool Shared::set_cushion(PoolState& pool, std::size_t pages, Refusal& refusal) noexcept {
  Cushion& cushion = pool.cushion;
  if (pages < cushion.pages) {
    if (!source->decommit(cushion.base + pages, cushion.pages - pages)) return false;
    const Guard guard(lock);
    record(EventKind::unmap, cushion.base + pages, cushion.pages - pages);
    discharge(cushion.pages - pages, &pool);
    cushion.pages = pages;
  } else if (pages > cushion.pages) {
    const std::size_t more = pages - cushion.pages;
    {
      const Guard guard(lock);
      if (!admit(more, &pool, refusal)) return false;
    }
    const bool is_committed = source->commit(cushion.base + cushion.pages, more);
    const Guard guard(lock);
    if (!is_committed) {
      discharge(more, &pool);
      return false;
    }
    record(EventKind::map, cushion.base + cushion.pages, more);
    cushion.pages = pages;
  }
  return true;
}

void Shared::refill_cushion(PoolState& pool) noexcept {
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
  set_cushion(pool, cushion.pages + more / profile.page_bytes * profile.page_bytes, ignored);
}

// Pools come and go between two turns of the lock: one that moves up is met next time.
std::size_t Shared::take_resting(std::size_t bytes, PoolState* only_of) noexcept {
  std::size_t taken = 0;
  for (std::size_t at = 0; taken < bytes;) {
    PoolState* of = nullptr;
    Holding* found = nullptr;
    {
      const Guard guard(lock);
      for (; !found && at < pools.size(); at += found ? 0 : 1) {
        of = pools[at];
        if (only_of ? of != only_of : of->reserves_ahead()) continue;
        for (auto& [age, holding] : of->holdings) {
          auto resting = Holding::Presence::resting;
          if (holding.pages > 0 && holding.presence.compare_exchange_strong(
                                       resting, Holding::Presence::away, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
            found = &holding;
            break;
          }
        }
      }
    }
    if (!found) break;
    const std::size_t pages = found->pages;
    if (take_away(*of, *found, Holding::Presence::away)) {
      taken += pages;
    } else {
      found->presence.store(Holding::Presence::resting, std::memory_order_release);
      ++at;  // the device keeps it
    }
  }
  return taken;
}

}  // namespace ebb::memory::detail
