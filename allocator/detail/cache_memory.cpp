// Memory on its way between the device and the cache.
#include <algorithm>
#include <utility>

#include "ebb/allocator/detail/allocator_state.h"

namespace ebb::memory::detail {

BlockNode* AllocatorState::grow_cache(const Request& request, Refusal& refusal) {
  if (!profile.grows) return map_segment(request, refusal);
  const std::size_t bytes = profile.rounded(request.bytes);
  for (bool with_step = true;;) {
    Heap::Row row;
    {
      const Guard guard(lock);
      if (BlockNode* node = heap.take(bytes)) return serve(node, request);
      if (BlockNode* node = heap.take_spare(bytes)) return serve(node, request);
      row = heap.find_row(bytes);
      if (row.hole) {
        heap.claim(row, with_step ? row.with_step : row.bytes);
        if (!admit(row.bytes, nullptr, refusal)) {
          heap.abandon(row);
          if (!std::exchange(with_step, false)) return nullptr;
          continue;
        }
      }
    }
    if (!row.hole) {
      if (adopt_addresses(bytes)) continue;
      refusal = {.reason = OutOfMemory::Reason::addresses,
                 .reserve_bytes = profile.in_pages(bytes)};
      return nullptr;
    }
    const bool is_committed = source->commit(row.hole->data(), row.bytes);
    const Guard guard(lock);
    if (is_committed) {
      record(EventKind::map, row.hole->data(), row.bytes);
      return serve(heap.finish(row, bytes), request);
    }
    heap.abandon(row);
    refund(row.bytes, nullptr);
    refusal = {.reserve_bytes = row.bytes};
    if (!std::exchange(with_step, false)) return nullptr;
  }
}

BlockNode* AllocatorState::serve(BlockNode* node, const Request& request) noexcept {
  node->serve(request);
  ledger.add(request.bytes, node->bytes(), request.category);
  record(EventKind::allocate, *node);
  return node;
}

// Adds a range to the cache: the profile's size, or less where addresses are scarce. Then it leaves
// most of them to others, but serves a request for which they just suffice.
bool AllocatorState::adopt_addresses(std::size_t bytes) {
  const std::size_t least = profile.in_pages(bytes);
  std::size_t range = std::max(profile.range_bytes, least);
  void* base = source->reserve(range);
  while (!base && range > least) {
    range = std::max(profile.in_pages(range / 2), least);
    base = source->reserve(range);
  }
  if (base && range < profile.range_bytes && range > least) {
    source->unreserve(base, range);
    range = std::max(profile.in_pages(range / 8), least);
    base = source->reserve(range);
  }
  if (!base) return false;
  try {
    const Guard guard(lock);
    heap.add_segment(base, range, bytes, false);
  } catch (...) {
    source->unreserve(base, range);
    throw;
  }
  return true;
}

BlockNode* AllocatorState::map_segment(const Request& request, Refusal& refusal) {
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
        heap.add_segment(base, segment_bytes, bytes, true);
        record(EventKind::map, base, segment_bytes);
        return serve(heap.take(bytes), request);
      } catch (...) {
        source->unmap(base, segment_bytes);
        refund(segment_bytes, nullptr);
        throw;
      }
    }
    refund(segment_bytes, nullptr);
  }
  return nullptr;
}

// Adds the memory in one piece, as if it had been freed.
bool AllocatorState::preallocate(std::size_t bytes, Refusal& refusal) {
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
      refusal = {.reason = OutOfMemory::Reason::addresses, .reserve_bytes = more};
      return false;
    }
    const bool is_committed = source->commit(node->data(), more);
    const Guard guard(lock);
    if (is_committed)
      record(EventKind::map, node->data(), more);
    else
      refund(more, nullptr);
    node->has_memory = is_committed;
    node->set_last_user(nullptr);
    heap.settle(node);
    if (!is_committed) return false;
    break;
  }
  preallocated = target;
  return true;
}

void AllocatorState::refill_preallocated() noexcept {
  if (preallocated == 0) return;
  const std::size_t target = preallocated;
  const std::size_t most = locked(lock, [&] {
    const std::size_t all = std::min(limit, source->capacity_bytes());
    return profile.whole_pages(all - std::min(all, reserved_by_pools));
  });
  try {
    Refusal ignored;
    preallocate(std::min(target, most), ignored);
  } catch (...) {  // NOLINT(bugprone-empty-catch): it is as full as it can be
  }
  preallocated = target;
}

ReleaseReport AllocatorState::trim(std::size_t bytes) noexcept {
  if (!profile.grows) return trim_segments(bytes);
  ReleaseReport report;
  // Only pages that are free now. Pages freed meanwhile are for their owners to use again; chasing
  // them might never end.
  bytes = std::min(bytes, locked(lock, [&] { return heap.free_bytes().in_pages; }));
  while (report.returned_bytes < bytes) {
    BlockNode* const claimed = locked(lock, [&] {
      return heap.claim_pages(std::min(bytes - report.returned_bytes, kMostAtOnce));
    });
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
    mapping.unlock();  // lets waiting threads in
    mapping.lock();
  }
  drop_empty();
  return report;
}

// Gives back the addresses of ranges without any memory.
void AllocatorState::drop_empty() noexcept {
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

// Returns whole segments, oldest first.
ReleaseReport AllocatorState::trim_segments(std::size_t bytes) noexcept {
  ReleaseReport report;
  for (std::uint64_t age = 0; report.returned_bytes < bytes; ++age) {
    Segment segment;
    {
      const Guard guard(lock);
      const Segments& segments = heap.segments();
      const auto idle = std::find_if(segments.lower_bound(age), segments.end(),
                                     [](const auto& each) { return each.second.is_idle(); });
      if (idle == segments.end()) break;
      segment = idle->second;
      heap.claim(segment);
    }
    age = segment.age;
    const bool is_back = source->unmap(segment.base, segment.bytes);
    const Guard guard(lock);
    heap.settle(segment.first);
    (is_back ? report.returned_bytes : report.refused_bytes) += segment.bytes;
    if (!is_back) continue;
    heap.drop(heap.segments().find(segment.age));
    record(EventKind::unmap, segment.base, segment.bytes);
    discharge(segment.bytes, nullptr);
  }
  return report;
}

}  // namespace ebb::memory::detail
