#include "ebb/graph/placement.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace ebb::detail {

namespace {

// Finds the most bytes alive at once, and the step where.
void measure(std::span<const BufferLife> buffers, ArenaLayout& layout) {
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
  // Within a step, ended buffers go before new ones come.
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.step != b.step ? a.step < b.step : a.bytes < b.bytes;
  });
  std::ptrdiff_t alive = 0;
  for (const Event& event : events) {
    alive += event.bytes;
    if (static_cast<std::size_t>(alive) > layout.lower_bound_bytes) {
      layout.lower_bound_bytes = static_cast<std::size_t>(alive);
      layout.peak_step = event.step;
    }
  }
}

// Offsets, one per buffer, and the end of the last one.
struct Layout {
  std::vector<std::size_t> offsets;
  std::size_t total_bytes = 0;
};

// Places buffers largest first, each into the smallest gap among buffers placed before and alive
// with it. Compares all pairs: for up to some thousands of buffers.
Layout largest_first(std::span<const BufferLife> buffers) {
  Layout layout{std::vector<std::size_t>(buffers.size(), 0)};
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (buffers[a].bytes != buffers[b].bytes) return buffers[a].bytes > buffers[b].bytes;
    if (buffers[a].first != buffers[b].first) return buffers[a].first < buffers[b].first;
    return a < b;
  });

  std::vector<std::size_t> by_offset;  // buffers that have a place, by offset
  for (const std::size_t index : order) {
    const BufferLife& buffer = buffers[index];
    std::size_t best = 0, best_gap = std::numeric_limits<std::size_t>::max();
    std::size_t free_from = 0;
    for (const std::size_t other : by_offset) {
      const BufferLife& o = buffers[other];
      if (o.last < buffer.first || buffer.last < o.first) continue;
      const std::size_t begin = layout.offsets[other];
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
    layout.offsets[index] = best;
    layout.total_bytes = std::max(layout.total_bytes, best + buffer.bytes);
    const auto at = std::upper_bound(
        by_offset.begin(), by_offset.end(), best,
        [&](std::size_t offset, std::size_t o) { return offset < layout.offsets[o]; });
    by_offset.insert(at, index);
  }
  return layout;
}

// Free ranges below the end of the arena, by offset and by size; neighbours are merged.
class Gaps {
 public:
  // Takes the smallest gap that is large enough, or room at the end. Returns its offset.
  std::size_t take(std::size_t bytes) {
    const auto best = by_size_.lower_bound({bytes, 0});
    if (best != by_size_.end()) {
      const auto [size, offset] = *best;
      remove(by_offset_.find(offset));
      if (size > bytes) add(offset + bytes, size - bytes);
      return offset;
    }
    std::size_t offset = end_;
    if (!by_offset_.empty()) {
      const auto last = std::prev(by_offset_.end());
      if (last->first + last->second == end_) {
        offset = last->first;
        remove(last);
      }
    }
    end_ = offset + bytes;
    return offset;
  }

  void give(std::size_t offset, std::size_t bytes) {
    const auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        offset = previous->first;
        bytes += previous->second;
        remove(previous);
      }
    }
    if (next != by_offset_.end() && offset + bytes == next->first) {
      bytes += next->second;
      remove(next);
    }
    add(offset, bytes);
  }

  std::size_t end() const noexcept { return end_; }

 private:
  using Map = std::map<std::size_t, std::size_t>;  // offset, bytes
  void add(std::size_t offset, std::size_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(Map::iterator gap) {
    by_size_.erase({gap->second, gap->first});
    by_offset_.erase(gap);
  }

  Map by_offset_;
  std::set<std::pair<std::size_t, std::size_t>> by_size_;  // bytes, offset
  std::size_t end_ = 0;
};

// Goes through time forwards or backwards: each buffer takes the smallest gap when its life begins
// and gives it back when it ends. n log n.
Layout sweep(std::span<const BufferLife> buffers, bool from_the_end) {
  Layout layout{std::vector<std::size_t>(buffers.size(), 0)};
  std::vector<std::size_t> begins(buffers.size()), ends;
  std::iota(begins.begin(), begins.end(), std::size_t{0});
  ends = begins;
  const auto first = [&](std::size_t i) {
    return from_the_end ? ~buffers[i].last : buffers[i].first;
  };
  const auto last = [&](std::size_t i) {
    return from_the_end ? ~buffers[i].first : buffers[i].last;
  };
  std::sort(begins.begin(), begins.end(), [&](std::size_t a, std::size_t b) {
    if (first(a) != first(b)) return first(a) < first(b);
    if (buffers[a].bytes != buffers[b].bytes) return buffers[a].bytes > buffers[b].bytes;
    return a < b;
  });
  std::sort(ends.begin(), ends.end(), [&](std::size_t a, std::size_t b) {
    return last(a) != last(b) ? last(a) < last(b) : a < b;
  });
  Gaps gaps;
  auto ending = ends.begin();
  for (const std::size_t index : begins) {
    for (; ending != ends.end() && last(*ending) < first(index); ++ending)
      gaps.give(layout.offsets[*ending], buffers[*ending].bytes);
    layout.offsets[index] = gaps.take(buffers[index].bytes);
  }
  layout.total_bytes = gaps.end();
  return layout;
}

}  // namespace

ArenaLayout place(std::span<const BufferLife> buffers) {
  constexpr std::size_t kMostPairwise = 4096;
  ArenaLayout layout;
  measure(buffers, layout);
  Layout best;
  bool found = false;
  const auto consider = [&](const auto& method) {
    if (found && best.total_bytes == layout.lower_bound_bytes) return;
    Layout layout = method();
    if (!found || layout.total_bytes < best.total_bytes) best = std::move(layout);
    found = true;
  };
  if (buffers.size() <= kMostPairwise) consider([&] { return largest_first(buffers); });
  consider([&] { return sweep(buffers, false); });
  consider([&] { return sweep(buffers, true); });
  layout.offsets = std::move(best.offsets);
  layout.total_bytes = best.total_bytes;
  return layout;
}

}  // namespace ebb::detail
