// Memory on its way between the device and an allocator.
#include <algorithm>
#include <utility>

#include "ebb/allocator/detail/shared.h"

namespace ebb::memory::detail {

namespace {
// At most so much is on its way at a time, so that whoever else needs the device gets his turn.
constexpr std::size_t kMostAtOnce = std::size_t{64} << 20;
}  // namespace

BlockNode* Shared::grow_cache(const Request& request, Refusal& refusal, bool is_counted) {
  if (!profile.grows) return map_segment(request, refusal);
  const std::size_t bytes = profile.rounded(request.bytes);
  for (bool with_step = true;;) {
    Heap::Row row;
    {
      const Guard guard(lock);
      if (BlockNode* node = heap.take(bytes)) return serve(node, request, is_counted);
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
    const bool committed = commit_row(row);
    const Guard guard(lock);
    if (committed) {
      for (const BlockNode* node = row.first; recorder; node = node->after) {
        if (!node->has_memory) record(EventKind::map, node->data(), node->bytes());
        if (node == row.last) break;
      }
      return serve(heap.finish(row, bytes), request, is_counted);
    }
    heap.abandon(row);
    discharge(row.bytes, nullptr);
    refusal = {.reserve_bytes = row.bytes};
    if (!std::exchange(with_step, false)) return nullptr;
  }
}

BlockNode* Shared::serve(BlockNode* node, const Request& request, bool is_counted) noexcept {
  node->serve(request);
  if (!is_counted) return node;
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

// All of its holes, or none.
bool Shared::commit_row(const Heap::Row& row) noexcept {
  for (BlockNode* node = row.first;; node = node->after) {
    if (!node->has_memory && !source->commit(node->data(), node->bytes())) {
      for (BlockNode* done = row.first; done != node; done = done->after)
        if (!done->has_memory) source->decommit(done->data(), done->bytes());
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

// As blocks that are taken and given back at once, and never counted: the first ones may be of what
// is free already.
bool Shared::preallocate(std::size_t bytes, Refusal& refusal) {
  std::vector<BlockNode*> taken;
  const auto missing = [&] {
    const Guard guard(lock);
    const std::size_t reserved = cache_reserved();
    return bytes - std::min(bytes, reserved);
  };
  const auto give_back = [&] {
    const Guard guard(lock);
    for (BlockNode* node : taken) heap.give(node);
  };
  preallocated = bytes;
  try {
    while (const std::size_t more = missing()) {
      taken.reserve(taken.size() + 1);
      BlockNode* node = grow_cache({.bytes = more}, refusal, false);
      if (!node) break;
      taken.push_back(node);
    }
  } catch (...) {
    give_back();
    throw;
  }
  give_back();
  return missing() == 0;
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
  record(EventKind::unmap, holding.base, holding.pages);
  discharge(holding.pages, &pool);
  holding.presence.store(then, std::memory_order_release);
  return true;
}

bool Shared::drop(PoolState& pool, Holding& holding) noexcept {
  const bool has_memory = holding.presence != Holding::Presence::away &&
                          holding.presence != Holding::Presence::suspended;
  std::size_t left = has_memory ? holding.pages : 0;
  {
    const Guard guard(lock);
    if (has_memory && holding.presence != Holding::Presence::stuck) uncount(pool, holding);
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
  holding.pages = left;
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
      pool.ledger.reserve(more);
      ledger.reserve(more);
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
  Cushion& cushion = pool.cushion;
  const std::size_t reserved = pool.ledger.published_reserved();
  if (reserved >= cushion.target) return;
  Refusal ignored;
  set_cushion(pool, std::min(cushion.addresses, cushion.pages + (cushion.target - reserved)),
              ignored);
}

std::size_t Shared::take_resting(std::size_t bytes, PoolState* only_of) noexcept {
  std::size_t taken = 0;
  while (taken < bytes) {
    PoolState* of = nullptr;
    Holding* found = nullptr;
    {
      const Guard guard(lock);
      for (PoolState* pool : pools) {
        if (only_of ? pool != only_of : pool->reserves_ahead()) continue;
        for (auto& [age, holding] : pool->holdings) {
          auto resting = Holding::Presence::resting;
          if (holding.pages > 0 && holding.presence.compare_exchange_strong(
                                       resting, Holding::Presence::away, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
            of = pool;
            found = &holding;
            break;
          }
        }
        if (found) break;
      }
    }
    if (!found) break;
    const std::size_t pages = found->pages;
    if (!take_away(*of, *found, Holding::Presence::away)) {
      found->presence.store(Holding::Presence::resting, std::memory_order_release);
      break;
    }
    taken += pages;
  }
  return taken;
}

}  // namespace ebb::memory::detail
