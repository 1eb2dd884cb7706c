#include "ebb/core/memory/place.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "ebb/core/base/error.h"
#include "ebb/core/memory/place_parts.h"

namespace ebb::memory {

namespace {

// Places buffers largest first, each into the smallest gap among buffers placed before and alive
// with it. Compares all pairs: for up to some thousands of buffers.
Placement largest_first(std::span<const Lifetime> buffers) {
  Placement layout{.offsets = std::vector<std::size_t>(buffers.size(), 0)};
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (buffers[a].bytes != buffers[b].bytes) return buffers[a].bytes > buffers[b].bytes;
    if (buffers[a].first != buffers[b].first) return buffers[a].first < buffers[b].first;
    return a < b;
  });

  std::vector<std::size_t> by_offset;  // buffers that have a place, by offset
  for (const std::size_t index : order) {
    const Lifetime& buffer = buffers[index];
    std::size_t best = 0, best_gap = std::numeric_limits<std::size_t>::max();
    std::size_t free_from = 0;
    for (const std::size_t other : by_offset) {
      const Lifetime& o = buffers[other];
      if (o.end <= buffer.first || buffer.end <= o.first) continue;
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

// Free ranges of the arena, by begin, end and size; neighbours are merged.
class Gaps {
 public:
  // Takes the smallest gap that is large enough, or room at the end. Returns its offset.
  std::size_t take(std::size_t bytes) {
    const auto best = by_size_.lower_bound({bytes, 0});
    if (best != by_size_.end()) {
      const auto [size, offset] = *best;
      remove(offset, size);
      if (size > bytes) add(offset + bytes, size - bytes);
      return offset;
    }
    std::size_t offset = end_;
    if (const auto last = begin_of_.find(end_); last != begin_of_.end()) {
      offset = last->second;
      remove(offset, end_ - offset);
    }
    end_ = offset + bytes;
    return offset;
  }

  void give(std::size_t offset, std::size_t bytes) {
    std::size_t end = offset + bytes;
    if (const auto next = end_of_.find(end); next != end_of_.end()) {
      const std::size_t begin = std::exchange(end, next->second);
      remove(begin, end - begin);
    }
    if (const auto previous = begin_of_.find(offset); previous != begin_of_.end()) {
      const std::size_t begin = previous->second;
      remove(begin, std::exchange(offset, begin) - begin);
    }
    add(offset, end - offset);
  }

  std::size_t end() const noexcept { return end_; }

 private:
  void add(std::size_t offset, std::size_t bytes) {
    end_of_.emplace(offset, offset + bytes);
    begin_of_.emplace(offset + bytes, offset);
    by_size_.emplace(bytes, offset);
  }
  void remove(std::size_t offset, std::size_t bytes) {
    end_of_.erase(offset);
    begin_of_.erase(offset + bytes);
    by_size_.erase({bytes, offset});
  }

  std::unordered_map<std::size_t, std::size_t> end_of_, begin_of_;
  std::set<std::pair<std::size_t, std::size_t>> by_size_;  // bytes, offset
  std::size_t end_ = 0;
};

// Goes through time forwards or backwards: each buffer takes the smallest gap when its life begins
// and gives it back when it ends. Forwards, it meets the first step with most bytes. n log n.
Placement sweep(std::span<const Lifetime> buffers, bool from_the_end) {
  Placement layout{.offsets = std::vector<std::size_t>(buffers.size(), 0)};
  std::vector<std::size_t> begins(buffers.size()), ends;
  std::iota(begins.begin(), begins.end(), std::size_t{0});
  ends = begins;
  const auto first = [&](std::size_t i) {
    return from_the_end ? ~buffers[i].end : buffers[i].first;
  };
  const auto end = [&](std::size_t i) { return from_the_end ? ~buffers[i].first : buffers[i].end; };
  std::sort(begins.begin(), begins.end(), [&](std::size_t a, std::size_t b) {
    if (first(a) != first(b)) return first(a) < first(b);
    if (buffers[a].bytes != buffers[b].bytes) return buffers[a].bytes > buffers[b].bytes;
    return a < b;
  });
  std::sort(ends.begin(), ends.end(), [&](std::size_t a, std::size_t b) {
    return end(a) != end(b) ? end(a) < end(b) : a < b;
  });
  Gaps gaps;
  std::size_t alive = 0;
  auto ending = ends.begin();
  for (const std::size_t index : begins) {
    for (; ending != ends.end() && end(*ending) <= first(index); ++ending) {
      gaps.give(layout.offsets[*ending], buffers[*ending].bytes);
      alive -= buffers[*ending].bytes;
    }
    layout.offsets[index] = gaps.take(buffers[index].bytes);
    alive += buffers[index].bytes;
    if (alive <= layout.lower_bound_bytes) continue;
    layout.lower_bound_bytes = alive;
    layout.peak_step = buffers[index].first;
  }
  layout.total_bytes = gaps.end();
  return layout;
}

constexpr std::size_t kMostGrouped = std::size_t{1} << 16;

// The best of the orders: largest first where comparing all pairs is quick, and two sweeps.
Placement best_order(std::span<const Lifetime> buffers) {
  constexpr std::size_t kMostPairwise = 4096;
  Placement best = sweep(buffers, false);
  const std::size_t bound = best.lower_bound_bytes;
  const auto consider = [&](const auto& method) {
    if (best.total_bytes == bound) return;
    Placement layout = method();
    if (layout.total_bytes >= best.total_bytes) return;
    best.offsets = std::move(layout.offsets);
    best.total_bytes = layout.total_bytes;
  };
  if (buffers.size() <= kMostPairwise) consider([&] { return largest_first(buffers); });
  // Of many buffers the second sweep takes seconds, for less than a percent.
  if (buffers.size() <= kMostGrouped || best.total_bytes - bound > bound / 100)
    consider([&] { return sweep(buffers, true); });
  return best;
}

// Buffers have bytes and steps.
Placement best_layout(std::span<const Lifetime> buffers, std::size_t steps) {
  Placement best = best_order(buffers);
  const std::size_t bound = best.lower_bound_bytes;
  const auto search = [&](std::span<const Lifetime> lives, Placement& layout, std::size_t most) {
    if (layout.total_bytes == bound || most == 0) return;
    if (const std::size_t pairs = detail::overlapping_pairs(lives, most); pairs < most)
      layout.total_bytes = detail::search(lives, bound, most - pairs, layout.offsets);
  };
  if (best.total_bytes > bound && buffers.size() <= kMostGrouped) {
    const detail::Groups groups(buffers);
    if (groups.lifetimes().size() < buffers.size()) {
      Placement grouped = best_order(groups.lifetimes());
      search(groups.lifetimes(), grouped, steps / 2);
      steps -= steps / 2;
      if (grouped.total_bytes < best.total_bytes) {
        best.offsets = groups.offsets(grouped.offsets);
        best.total_bytes = grouped.total_bytes;
      }
    }
  }
  search(buffers, best, steps);
  return best;
}

}  // namespace

Placement place(std::span<const Lifetime> buffers, const PlaceOptions& options, CallSite site) {
  const ebb::detail::CallSiteScope scope(site);
  constexpr std::size_t kMostBytes = std::size_t{1} << 63;
  std::size_t sum = 0;
  std::vector<Lifetime> real;  // with bytes and steps
  std::vector<std::size_t> numbers;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const Lifetime& life = buffers[b];
    if (life.end < life.first)
      ebb::detail::refuse("place", "buffer " + std::to_string(b) + " begins at step " +
                                       std::to_string(life.first) + " and ends before that, at " +
                                       std::to_string(life.end));
    if (life.bytes > kMostBytes - sum)
      ebb::detail::refuse("place", "buffer " + std::to_string(b) + " of " +
                                       std::to_string(life.bytes) + " bytes makes " +
                                       "the sum of all sizes larger than 2^63");
    sum += life.bytes;
    if (life.bytes == 0 || life.end == life.first) continue;
    real.push_back(life);
    numbers.push_back(b);
  }
  Placement placed = best_layout(real, options.steps);
  std::vector<std::size_t> offsets(buffers.size(), 0);
  for (std::size_t r = 0; r < real.size(); ++r) offsets[numbers[r]] = placed.offsets[r];
  placed.offsets = std::move(offsets);
  return placed;
}

}  // namespace ebb::memory
