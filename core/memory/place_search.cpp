#include "ebb/core/memory/place_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <queue>
#include <random>
#include <utility>

namespace ebb::memory::detail {

namespace {

std::vector<std::uint32_t> by_first(std::span<const Lifetime> buffers) {
  std::vector<std::uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return buffers[a].first < buffers[b].first;
  });
  return order;
}

class Search {
 public:
  // No end will be lower than `bound`. Sizes are multiples of `unit`.
  Search(std::span<const Lifetime> buffers, std::size_t bound, std::size_t unit,
         std::vector<std::size_t>& offsets)
      : buffers_(buffers), offsets_(offsets), neighbours_(buffers.size()) {
    std::vector<std::uint32_t> alive;
    for (const std::uint32_t b : by_first(buffers)) {
      std::erase_if(alive, [&](auto other) { return buffers[other].end <= buffers[b].first; });
      for (const std::uint32_t other : alive) {
        neighbours_[b].push_back(other);
        neighbours_[other].push_back(b);
      }
      alive.push_back(b);
    }
    // Whole numbers, so that sums do not depend on the machine. A weight is the root of the area.
    double largest = 0;
    const auto area = [](const Lifetime& b) {
      return static_cast<double>(b.bytes) * static_cast<double>(b.end - b.first);
    };
    for (const Lifetime& b : buffers) largest = std::max(largest, area(b));
    for (const Lifetime& b : buffers)
      base_.push_back(1 + static_cast<std::uint64_t>(std::sqrt(area(b) / largest) * 0x1p20));
    set_easy_aside(bound, unit);
  }

  // End of the highest buffer, those that were set aside not counted.
  std::size_t end() const {
    std::size_t end = 0;
    for (std::size_t b = 0; b < buffers_.size(); ++b)
      if (offsets_[b] != kNowhere) end = std::max(end, offsets_[b] + buffers_[b].bytes);
    return end;
  }

  // Moves all buffers below `end`, and takes its work from `steps`. If they do not suffice, offsets
  // are no placement.
  bool fit_below(std::size_t end, std::size_t& steps) {
    weights_ = base_;
    waiting_.clear();
    for (std::uint32_t b = 0; b < buffers_.size(); ++b)
      if (offsets_[b] != kNowhere && offsets_[b] + buffers_[b].bytes > end) evict(b);
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

  // Gives places below `end` to the buffers that were set aside.
  void place_easy(std::size_t end) {
    weights_ = base_;
    for (auto b = easy_.rbegin(); b != easy_.rend(); ++b) insert(*b, end);
  }

 private:
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  using Edge = std::pair<std::size_t, std::uint64_t>;  // offset, weight of the buffer

  // Sets buffers aside that find a place below `bound` wherever their neighbours are: the gaps
  // between n neighbours are n + 1 at most, so one of them has its share of the free bytes. Each
  // makes others easy. (Chaitin's coloring drops nodes of few neighbours in the same way.)
  void set_easy_aside(std::size_t bound, std::size_t unit) {
    std::vector<std::size_t> gaps, taken(buffers_.size(), 0);
    for (std::size_t b = 0; b < buffers_.size(); ++b) {
      gaps.push_back(neighbours_[b].size() + 1);
      for (const std::uint32_t other : neighbours_[b]) taken[b] += buffers_[other].bytes;
    }
    std::vector<std::uint32_t> to_check = by_first(buffers_);
    while (!to_check.empty()) {
      const std::uint32_t b = to_check.back();
      to_check.pop_back();
      if (offsets_[b] == kNowhere || taken[b] >= bound ||
          buffers_[b].bytes - unit > (bound - taken[b] - 1) / gaps[b])
        continue;
      offsets_[b] = kNowhere;
      easy_.push_back(b);
      std::erase_if(neighbours_[b], [&](auto other) { return offsets_[other] == kNowhere; });
      for (const std::uint32_t other : neighbours_[b]) {
        --gaps[other];
        taken[other] -= buffers_[b].bytes;
        to_check.push_back(other);
      }
    }
    for (std::uint32_t b = 0; b < buffers_.size(); ++b)
      if (offsets_[b] != kNowhere)
        std::erase_if(neighbours_[b], [&](auto other) { return offsets_[other] == kNowhere; });
  }

  void evict(std::uint32_t b) {
    offsets_[b] = kNowhere;
    waiting_.push_back(b);
  }

  // Places b where the buffers in its way weigh least, and evicts those.
  void insert(std::uint32_t b, std::size_t end) {
    const std::size_t bytes = buffers_[b].bytes;
    placed_.clear(), begins_.clear(), ends_.clear();
    candidates_.assign(1, 0);
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
  // Buffers alive at a common step, except those that are set aside and placed later.
  std::vector<std::vector<std::uint32_t>> neighbours_;
  std::vector<std::uint32_t> easy_;  // set aside, the last to be placed first
  std::vector<std::uint64_t> base_, weights_;
  std::vector<std::uint32_t> waiting_;  // buffers without a place
  std::mt19937 random_;                 // the same numbers everywhere
  std::vector<std::uint32_t> placed_;
  std::vector<Edge> begins_, ends_;
  std::vector<std::size_t> candidates_;
};

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
  std::size_t unit = 0;  // all offsets are multiples of it
  for (const Lifetime& b : buffers) unit = std::gcd(unit, b.bytes);
  Search search(buffers, bound, unit, offsets);
  std::size_t end = search.end();
  std::vector<std::size_t> best = offsets;
  // A try ends by luck or late: after this many steps, a new one from the best offsets does better.
  const std::size_t most = 1000 * buffers.size();
  while (end > bound && steps > 0) {
    const std::size_t units = (end - bound) / unit;
    const std::size_t target = bound + (units - 1 - (units - 1) / 10) * unit;
    std::size_t left = std::min(steps, most);
    steps -= left;
    if (search.fit_below(target, left)) {
      steps += left;
      end = search.end();
      best = offsets;
    } else {
      offsets = best;
    }
  }
  offsets = std::move(best);
  search.place_easy(std::max(end, bound));
  return search.end();
}

}  // namespace ebb::memory::detail
