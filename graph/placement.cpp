#include "ebb/graph/placement.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace ebb::detail {

namespace {

// The most bytes alive at once, and the step where.
void measure(std::span<const BufferLife> buffers, Placed& placed) {
  struct Event {
    std::size_t step;
    std::ptrdiff_t bytes;
  };
  std::vector<Event> events;
  events.reserve(2 * buffers.size());
  for (const BufferLife& b : buffers) {
    events.push_back({b.first, static_cast<std::ptrdiff_t>(b.bytes)});
    events.push_back({b.last + 1, -static_cast<std::ptrdiff_t>(b.bytes)});
  }
  // At a step, what ended before it goes first.
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.step != b.step ? a.step < b.step : a.bytes < b.bytes;
  });
  std::ptrdiff_t alive = 0;
  for (const Event& event : events) {
    alive += event.bytes;
    if (static_cast<std::size_t>(alive) > placed.lower_bound_bytes) {
      placed.lower_bound_bytes = static_cast<std::size_t>(alive);
      placed.peak_step = event.step;
    }
  }
}

}  // namespace

Placed place(std::span<const BufferLife> buffers) {
  Placed placed;
  placed.offsets.assign(buffers.size(), 0);
  measure(buffers, placed);

  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (buffers[a].bytes != buffers[b].bytes) return buffers[a].bytes > buffers[b].bytes;
    if (buffers[a].first != buffers[b].first) return buffers[a].first < buffers[b].first;
    return a < b;
  });

  std::vector<std::size_t> by_offset;  // those placed, in the order of their offsets
  for (const std::size_t index : order) {
    const BufferLife& buffer = buffers[index];
    std::size_t best = 0, best_gap = std::numeric_limits<std::size_t>::max();
    std::size_t free_from = 0;
    for (const std::size_t other : by_offset) {
      const BufferLife& o = buffers[other];
      if (o.last < buffer.first || buffer.last < o.first) continue;
      const std::size_t begin = placed.offsets[other];
      if (begin > free_from) {
        const std::size_t gap = begin - free_from;
        if (gap >= buffer.bytes && gap < best_gap) {
          best = free_from;
          best_gap = gap;
        }
      }
      free_from = std::max(free_from, begin + o.bytes);
    }
    if (best_gap == std::numeric_limits<std::size_t>::max()) best = free_from;
    placed.offsets[index] = best;
    placed.total_bytes = std::max(placed.total_bytes, best + buffer.bytes);
    const auto at = std::upper_bound(
        by_offset.begin(), by_offset.end(), best,
        [&](std::size_t offset, std::size_t o) { return offset < placed.offsets[o]; });
    by_offset.insert(at, index);
  }
  return placed;
}

}  // namespace ebb::detail
