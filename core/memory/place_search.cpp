#include "ebb/core/memory/place_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <queue>
#include <random>
#include <utility>

namespace ebb::memory::detail {

namespace {

using Indices = std::vector<std::uint32_t>;

constexpr std::size_t kNowhere = ~std::size_t{0};
constexpr std::size_t kMostStacked = 4000;  // stacks of buffers are built by recursion, one by one

double area(const Lifetime& b) {
  return static_cast<double>(b.bytes) * static_cast<double>(b.end - b.first);
}

Indices by_first(std::span<const Lifetime> buffers) {
  Indices order(buffers.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return buffers[a].first < buffers[b].first;
  });
  return order;
}

// Buffers alive at a common step, for each buffer.
std::vector<Indices> neighbours_of(std::span<const Lifetime> buffers) {
  std::vector<Indices> neighbours(buffers.size());
  Indices alive;
  for (const std::uint32_t b : by_first(buffers)) {
    std::erase_if(alive, [&](auto other) { return buffers[other].end <= buffers[b].first; });
    for (const std::uint32_t other : alive) {
      neighbours[b].push_back(other);
      neighbours[other].push_back(b);
    }
    alive.push_back(b);
  }
  return neighbours;
}

std::size_t end_of(std::span<const Lifetime> buffers, std::span<const std::size_t> offsets) {
  std::size_t end = 0;
  for (std::size_t b = 0; b < buffers.size(); ++b)
    end = std::max(end, offsets[b] + buffers[b].bytes);
  return end;
}

// The lowest gap among the neighbours that have a place.
std::size_t first_fit(std::span<const Lifetime> buffers, const Indices& neighbours,
                      std::span<const std::size_t> offsets, std::size_t bytes) {
  std::vector<std::pair<std::size_t, std::size_t>> taken;
  for (const std::uint32_t other : neighbours)
    if (offsets[other] != kNowhere)
      taken.emplace_back(offsets[other], offsets[other] + buffers[other].bytes);
  std::sort(taken.begin(), taken.end());
  std::size_t at = 0;
  for (const auto& [from, to] : taken) {
    if (from >= at + bytes) break;
    at = std::max(at, to);
  }
  return at;
}

// Places one buffer after another, each at 0 or on its neighbours, and goes back where the rest
// cannot fit any more.
class Stacking {
 public:
  // Of buffers that could be next, those that come first in `buffers` are tried first.
  explicit Stacking(std::span<const Lifetime> buffers)
      : buffers_(buffers),
        neighbours_(neighbours_of(buffers)),
        lows_(buffers.size()),
        offsets_(buffers.size()),
        deepest_(buffers.size(), kNowhere) {
    // Of the sets of buffers alive when one begins, those before an end contain all others.
    Indices alive;
    std::size_t sum = 0;
    const auto keep = [&] {
      sum += alive.size();
      cliques_.push_back(alive);
    };
    for (const std::uint32_t b : by_first(buffers)) {
      const auto over = [&](auto other) { return buffers[other].end <= buffers[b].first; };
      if (std::any_of(alive.begin(), alive.end(), over)) keep();
      std::erase_if(alive, over);
      alive.push_back(b);
    }
    keep();
    work_ = 1 + sum / 16;  // looking at them in order is quick
    heights_.resize(cliques_.size());
    rests_.resize(cliques_.size());
  }

  // These take their work from `steps`, and have failed for good if some are left.
  // Tries all placements, in the order of offsets (MiniMalloc: Moffitt, ASPLOS 2023).
  bool fit_below(std::size_t end, std::size_t& steps) {
    begin(end);
    return place_higher(buffers_.size(), 0, 0, steps);
  }
  // Fills valleys, where the buffers alive end lower than before and after. Finds placements
  // without gaps soon, and overlooks others.
  bool fill_below(std::size_t end, std::size_t& steps) {
    for (std::size_t tries = 8 * buffers_.size() * work_; steps > 0;) {
      std::size_t left = std::min(steps, tries);
      steps -= left;
      begin(end);
      if (fill_valleys(buffers_.size(), left)) return true;
      if (left > 0) return false;
    }
    return false;
  }

  const std::vector<std::size_t>& offsets() const noexcept { return offsets_; }
  // Offsets where fill_below() had most buffers, and the others in the lowest gaps.
  std::vector<std::size_t> nearly_filled() const {
    std::vector<std::size_t> offsets = deepest_;
    for (std::size_t b = 0; b < buffers_.size(); ++b)
      if (offsets[b] == kNowhere)
        offsets[b] = first_fit(buffers_, neighbours_[b], offsets, buffers_[b].bytes);
    return offsets;
  }

 private:
  void begin(std::size_t end) {
    end_ = end;
    std::fill(lows_.begin(), lows_.end(), 0);
    std::fill(offsets_.begin(), offsets_.end(), kNowhere);
    trail_.clear();
  }

  // Places b, then `the_rest`. Takes b away again if that fails.
  template <class Rest>
  bool place(std::uint32_t b, std::size_t at, const Rest& the_rest) {
    const std::size_t top = at + buffers_[b].bytes, trail = trail_.size();
    offsets_[b] = at;
    for (const std::uint32_t other : neighbours_[b])
      if (offsets_[other] == kNowhere && lows_[other] < top) {
        trail_.emplace_back(other, lows_[other]);
        lows_[other] = top;
      }
    if (the_rest()) return true;
    offsets_[b] = kNowhere;
    for (; trail_.size() > trail; trail_.pop_back())
      lows_[trail_.back().first] = trail_.back().second;
    return false;
  }

  // All that follow lie at `floor`, where buffer `last` is, or higher.
  bool place_higher(std::size_t left, std::size_t floor, std::uint32_t last, std::size_t& steps) {
    if (left == 0) return true;
    steps -= std::min(steps, work_);
    if (steps == 0) return false;
    std::size_t lowest_top = kNowhere;
    for (const Indices& clique : cliques_) {
      std::size_t low = kNowhere, rest = 0;
      for (const std::uint32_t b : clique) {
        if (offsets_[b] != kNowhere) continue;
        const std::size_t at = std::max(lows_[b], floor);
        low = std::min(low, at);
        lowest_top = std::min(lowest_top, at + buffers_[b].bytes);
        rest += buffers_[b].bytes;
      }
      if (rest > 0 && low + rest > end_) return false;
    }
    for (std::uint32_t b = 0; b < buffers_.size() && steps > 0; ++b) {
      const std::size_t at = std::max(lows_[b], floor);
      // Above `lowest_top` a buffer would leave a gap that another fills.
      if (offsets_[b] != kNowhere || at >= lowest_top || (at == floor && b < last)) continue;
      if (place(b, at, [&] { return place_higher(left - 1, at, b, steps); })) return true;
    }
    return false;
  }

  bool fill_valleys(std::size_t left, std::size_t& steps) {
    if (left < least_left_) {
      least_left_ = left;
      deepest_ = offsets_;
    }
    if (left == 0) return true;
    steps -= std::min(steps, work_);
    if (steps == 0) return false;
    const std::size_t count = cliques_.size();
    for (std::size_t c = 0; c < count; ++c) {
      std::size_t height = 0, rest = 0;
      for (const std::uint32_t b : cliques_[c])
        if (offsets_[b] == kNowhere)
          rest += buffers_[b].bytes;
        else
          height = std::max(height, offsets_[b] + buffers_[b].bytes);
      if (height + rest > end_) return false;
      heights_[c] = rest > 0 ? height : kNowhere;
      rests_[c] = rest;
    }
    // One of these buffers has to lie next on clique c.
    const auto is_next = [&](std::uint32_t b, std::size_t c) {
      return offsets_[b] == kNowhere && lows_[b] + rests_[c] <= end_;
    };
    std::size_t best = 0, fewest = kNowhere;
    for (std::size_t first = 0, after = 0; first < count; first = after) {
      const std::size_t height = heights_[first];
      while (after < count && heights_[after] == height) ++after;
      if (height == kNowhere || (first > 0 && heights_[first - 1] < height) ||
          (after < count && heights_[after] < height))
        continue;
      for (std::size_t c = first; c < after; ++c) {
        const auto choices = static_cast<std::size_t>(std::count_if(
            cliques_[c].begin(), cliques_[c].end(), [&](auto b) { return is_next(b, c); }));
        if (choices < fewest || (choices == fewest && height > heights_[best])) {
          fewest = choices;
          best = c;
        }
      }
    }
    std::vector<std::array<std::size_t, 3>> next;  // low, random, buffer
    for (const std::uint32_t b : cliques_[best])
      if (is_next(b, best)) next.push_back({lows_[b], random_(), b});
    std::sort(next.begin(), next.end());
    for (const auto& [low, _, b] : next)
      if (steps > 0 &&
          place(static_cast<std::uint32_t>(b), low, [&] { return fill_valleys(left - 1, steps); }))
        return true;
    return false;
  }

  const std::span<const Lifetime> buffers_;
  const std::vector<Indices> neighbours_;
  std::vector<Indices> cliques_;
  std::size_t work_ = 0;           // steps for each place
  std::vector<std::size_t> lows_;  // ends of the neighbours that have a place
  std::vector<std::size_t> offsets_, deepest_;
  std::vector<std::pair<std::uint32_t, std::size_t>> trail_;  // lows_ before they grew
  std::vector<std::size_t> heights_, rests_;  // of cliques: end, and bytes that have no place yet
  std::size_t end_ = 0;
  std::size_t least_left_ = kNowhere;  // buffers without a place in deepest_
  std::mt19937 random_;                // the same numbers everywhere
};

// Moves single buffers, each where those that have to leave weigh least.
class Exchange {
 public:
  Exchange(std::span<const Lifetime> buffers, std::vector<std::size_t>& offsets)
      : buffers_(buffers), offsets_(offsets), neighbours_(neighbours_of(buffers)) {
    // Whole numbers, so that sums do not depend on the machine. A weight is the root of the area.
    double largest = 0;
    for (const Lifetime& b : buffers) largest = std::max(largest, area(b));
    for (const Lifetime& b : buffers)
      base_.push_back(1 + static_cast<std::uint64_t>(std::sqrt(area(b) / largest) * 0x1p20));
  }

  // Moves all buffers below `end`, and takes its work from `steps`. If they do not suffice, offsets
  // are no placement.
  bool fit_below(std::size_t end, std::size_t& steps) {
    weights_ = base_;
    waiting_.clear();
    for (std::uint32_t b = 0; b < buffers_.size(); ++b)
      if (offsets_[b] + buffers_[b].bytes > end) evict(b);
    while (!waiting_.empty()) {
      const auto heaviest = std::max_element(waiting_.begin(), waiting_.end(), [&](auto a, auto b) {
        return weights_[a] < weights_[b];
      });
      const std::uint32_t b = *heaviest;
      // Inserting takes as long as looking at some buffers even where b has no neighbours.
      const std::size_t cost = neighbours_[b].size() + waiting_.size() + 16;
      if (cost > steps) return false;
      steps -= cost;
      *heaviest = waiting_.back();
      waiting_.pop_back();
      insert(b, end);
    }
    return true;
  }

 private:
  using Edge = std::pair<std::size_t, std::uint64_t>;  // offset, weight of the buffer

  void evict(std::uint32_t b) {
    offsets_[b] = kNowhere;
    waiting_.push_back(b);
  }

  // Places b where the buffers in its way weigh least, and evicts those.
  void insert(std::uint32_t b, std::size_t end) {
    const std::size_t bytes = buffers_[b].bytes;
    placed_.clear(), begins_.clear(), ends_.clear();
    candidates_ = {0, end - bytes};
    for (const std::uint32_t other : neighbours_[b]) {
      if (offsets_[other] == kNowhere) continue;
      const std::size_t from = offsets_[other], to = from + buffers_[other].bytes;
      placed_.push_back(other);
      begins_.emplace_back(from, weights_[other]);
      ends_.emplace_back(to, weights_[other]);
      if (to + bytes <= end) candidates_.push_back(to);
      if (from >= bytes) candidates_.push_back(from - bytes);
    }
    std::sort(candidates_.begin(), candidates_.end());
    candidates_.erase(std::unique(candidates_.begin(), candidates_.end()), candidates_.end());
    std::sort(begins_.begin(), begins_.end());
    std::sort(ends_.begin(), ends_.end());

    std::size_t best = 0;
    std::uint64_t least = ~std::uint64_t{0}, in_the_way = 0;
    std::uint_fast32_t ties = 0;
    auto begin = begins_.begin();
    auto over = ends_.begin();
    for (const std::size_t at : candidates_) {
      for (; begin != begins_.end() && begin->first < at + bytes; ++begin)
        in_the_way += begin->second;
      for (; over != ends_.end() && over->first <= at; ++over) in_the_way -= over->second;
      if (in_the_way < least) {
        least = in_the_way;
        best = at;
        ties = 1;
        if (least == 0) break;
      } else if (in_the_way == least && random_() % ++ties == 0) {
        best = at;
      }
    }
    for (const std::uint32_t other : placed_)
      if (offsets_[other] < best + bytes && best < offsets_[other] + buffers_[other].bytes) {
        evict(other);
        weights_[other] += base_[other];
      }
    offsets_[b] = best;
  }

  const std::span<const Lifetime> buffers_;
  std::vector<std::size_t>& offsets_;
  const std::vector<Indices> neighbours_;
  std::vector<std::uint64_t> base_, weights_;
  Indices waiting_;      // buffers without a place
  std::mt19937 random_;  // the same numbers everywhere
  Indices placed_;
  std::vector<Edge> begins_, ends_;
  std::vector<std::size_t> candidates_;
};

// Buffers that find a place below `bound` wherever their neighbours are, the last to be placed
// first: the gaps between n neighbours are n + 1 at most, so one of them has its share of the free
// bytes. Each makes others easy. (Chaitin's coloring drops nodes of few neighbours in the same
// way.) Sizes are multiples of `unit`.
Indices easy_buffers(std::span<const Lifetime> buffers, const std::vector<Indices>& neighbours,
                     std::size_t bound, std::size_t unit) {
  std::vector<std::size_t> gaps, taken(buffers.size(), 0);
  std::vector<bool> is_easy(buffers.size(), false);
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    gaps.push_back(neighbours[b].size() + 1);
    for (const std::uint32_t other : neighbours[b]) taken[b] += buffers[other].bytes;
  }
  Indices easy, to_check = by_first(buffers);
  while (!to_check.empty()) {
    const std::uint32_t b = to_check.back();
    to_check.pop_back();
    if (is_easy[b] || taken[b] >= bound ||
        buffers[b].bytes - unit > (bound - taken[b] - 1) / gaps[b])
      continue;
    is_easy[b] = true;
    easy.push_back(b);
    for (const std::uint32_t other : neighbours[b]) {
      if (is_easy[other]) continue;
      --gaps[other];
      taken[other] -= buffers[b].bytes;
      to_check.push_back(other);
    }
  }
  return easy;
}

// As search(), of buffers none of which is easy.
void search_hard(std::span<const Lifetime> buffers, std::size_t bound, std::size_t unit,
                 std::size_t steps, std::vector<std::size_t>& offsets) {
  std::size_t end = end_of(buffers, offsets);
  if (end <= bound) return;
  if (buffers.size() <= kMostStacked) {
    Stacking stacking(buffers);
    std::size_t filling = steps / 8, fitting = steps / 8;
    steps -= filling + fitting;
    const auto consider = [&](const std::vector<std::size_t>& found) {
      if (end_of(buffers, found) >= end) return;
      offsets = found;
      end = end_of(buffers, offsets);
    };
    consider(stacking.fill_below(bound, filling) ? stacking.offsets() : stacking.nearly_filled());
    for (std::size_t target = bound; end > bound; target = end - unit) {
      if (stacking.fit_below(target, fitting))
        consider(stacking.offsets());
      else if (fitting == 0)
        break;
      else if (target == end - unit)
        return;
    }
  }
  Exchange exchange(buffers, offsets);
  std::vector<std::size_t> best = offsets;
  // A try ends by luck or late: after this many steps, a new one from the best offsets does better.
  const std::size_t most = 1000 * buffers.size();
  while (end > bound && steps > 0) {
    const std::size_t units = (end - bound) / unit;
    const std::size_t target = bound + (units - 1 - (units - 1) / 10) * unit;
    std::size_t left = std::min(steps, most);
    steps -= left;
    if (exchange.fit_below(target, left)) {
      steps += left;
      end = end_of(buffers, offsets);
      best = offsets;
    } else {
      offsets = best;
    }
  }
  offsets = std::move(best);
}

}  // namespace

std::size_t overlapping_pairs(std::span<const Lifetime> buffers, std::size_t most) {
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ends;
  std::size_t pairs = 0;
  for (const std::uint32_t b : by_first(buffers)) {
    while (!ends.empty() && ends.top() <= buffers[b].first) ends.pop();
    pairs += ends.size();
    if (pairs >= most) return most;
    ends.push(buffers[b].end);
  }
  return pairs;
}

std::size_t search(std::span<const Lifetime> buffers, std::size_t bound, std::size_t steps,
                   std::vector<std::size_t>& offsets) {
  if (buffers.size() <= kMostStacked && place_tightly(buffers, bound, offsets)) return bound;
  std::size_t unit = 0;  // all offsets are multiples of it
  for (const Lifetime& b : buffers) unit = std::gcd(unit, b.bytes);
  const std::vector<Indices> neighbours = neighbours_of(buffers);
  const Indices easy = easy_buffers(buffers, neighbours, bound, unit);
  std::vector<bool> is_hard(buffers.size(), true);
  for (const std::uint32_t b : easy) is_hard[b] = false;

  // Sections of time that no hard buffer joins are searched one by one.
  std::vector<Indices> sections;
  std::size_t end = 0, hard = buffers.size() - easy.size();
  for (const std::uint32_t b : by_first(buffers)) {
    if (!is_hard[b]) continue;
    if (buffers[b].first >= end) sections.emplace_back();
    sections.back().push_back(b);
    end = std::max(end, buffers[b].end);
  }
  for (Indices& section : sections) {
    std::stable_sort(section.begin(), section.end(), [&](std::uint32_t a, std::uint32_t b) {
      return area(buffers[a]) > area(buffers[b]);
    });
    std::vector<Lifetime> lives;
    std::vector<std::size_t> found;
    for (const std::uint32_t b : section) {
      lives.push_back(buffers[b]);
      found.push_back(offsets[b]);
    }
    search_hard(lives, bound, unit, steps / hard * section.size(), found);
    for (std::size_t i = 0; i < section.size(); ++i) offsets[section[i]] = found[i];
    bound = std::max(bound, end_of(lives, found));
  }
  for (const std::uint32_t b : easy) offsets[b] = kNowhere;
  for (auto b = easy.rbegin(); b != easy.rend(); ++b)
    offsets[*b] = first_fit(buffers, neighbours[*b], offsets, buffers[*b].bytes);
  return end_of(buffers, offsets);
}

}  // namespace ebb::memory::detail
