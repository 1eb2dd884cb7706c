#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>

#include "ebb/graph/passes/timeline.h"

namespace ebb::detail {

namespace {

constexpr std::size_t kMostExhaustive = 15;  // steps, and values: half a million states

// Dijkstra's algorithm over all states of a run: the next step of the schedule, and which values
// are at hand. An edge runs that step, repeats an earlier one, or drops a value.
class Exhaustive {
 public:
  // Without a bound the turns have the lowest peak.
  Exhaustive(const Timeline& timeline, std::optional<std::size_t> bytes)
      : timeline_(timeline), bytes_(bytes), bit_of_(timeline.values.size(), kNone) {
    for (Index v = 0; v < timeline.values.size(); ++v)
      if (timeline.values[v].bytes > 0) bit_of_[v] = bits_++;
    last_use_.assign(timeline.values.size(), 0);
    for (Index p = 0; p < timeline.positions(); ++p)
      for (const Timeline::Read& read : timeline.reads_of(p)) last_use_[read.value] = p + 1;
    reached_.resize((timeline.positions() + 1) << bits_);
  }

  // Empty if the bound is too low.
  Turns run() {
    std::size_t start = 0;
    for (Index v = 0; v < bit_of_.size(); ++v)
      if (bit_of_[v] != kNone && timeline_.values[v].producer == kNone)
        start |= std::size_t{1} << bit_of_[v];
    reached_[start].cost = {};
    queue_.push({{}, start});
    while (!queue_.empty()) {
      const auto [cost, state] = queue_.top();
      queue_.pop();
      if (cost != reached_[state].cost) continue;
      if (state >> bits_ == timeline_.positions()) return turns_to(start, state);
      leave(cost, state);
    }
    return {};
  }

 private:
  struct Cost {
    std::size_t peak_bytes = 0;  // 0 under a bound
    std::int64_t nanoseconds = 0;
    auto operator<=>(const Cost&) const = default;
  };
  struct Reached {
    Cost cost{std::numeric_limits<std::size_t>::max(), 0};
    std::size_t from = 0;
    Turn turn{kNone, 0};  // step: none if a value was dropped
  };

  std::size_t at(Index value) const { return std::size_t{1} << bit_of_[value]; }

  void reach(const Cost& cost, std::size_t state, std::size_t from, const Turn& turn) {
    if (cost >= reached_[state].cost) return;
    reached_[state] = {cost, from, turn};
    queue_.push({cost, state});
  }

  void leave(const Cost& cost, std::size_t state) {
    const auto next = static_cast<Index>(state >> bits_);
    for (Index v = 0; v < bit_of_.size(); ++v) {
      const Timeline::Value& value = timeline_.values[v];
      const bool may_go = value.droppable || (last_use_[v] <= next && !value.at_the_end);
      if (bit_of_[v] != kNone && (state & at(v)) && may_go)
        reach(cost, state & ~at(v), state, {kNone, 0});
    }
    turn(cost, state, {next, next});
    for (Index s = 0; s < next; ++s)
      if (timeline_.can_repeat(s, next)) turn(cost, state, {s, next});
    for (const Timeline::Value& value : timeline_.values)
      if (value.restore != kNone && value.producer < next) turn(cost, state, {value.restore, next});
  }

  // Runs a step; once with all inputs kept, and once for each input whose memory it may have.
  void turn(const Cost& cost, std::size_t state, Turn turn) {
    const Timeline::Step& step = timeline_.steps[turn.step];
    std::size_t before = 0, after = state;
    for (Index v = 0; v < bit_of_.size(); ++v)
      if (bit_of_[v] != kNone && (state & at(v))) before += timeline_.values[v].bytes;
    for (const Timeline::Read& read : timeline_.reads_of(turn.step))
      if (bit_of_[read.value] != kNone && !(state & at(read.value))) return;
    const std::span<const Index> writes = timeline_.writes_of(turn.step);
    for (std::size_t k = 0; k < writes.size(); ++k) {
      const Timeline::Value& value = timeline_.values[writes[k]];
      before += turn.is_repeated() ? value.copy_bytes : value.bytes;
      if (bit_of_[writes[k]] == kNone || (state & at(writes[k]))) continue;
      after |= at(writes[k]);
      turn.renewed |= std::uint32_t{1} << k;
    }
    if (turn.is_repeated() && after == state) return;
    Cost sum = cost;
    if (turn.is_repeated()) sum.nanoseconds += step.nanoseconds;
    const auto run = [&](std::size_t alive, std::size_t to) {
      if (bytes_ && alive > *bytes_) return;
      Cost here = sum;
      if (!bytes_) here.peak_bytes = std::max(here.peak_bytes, alive);
      if (!turn.is_repeated()) to += std::size_t{1} << bits_;
      reach(here, to, state, turn);
    };
    run(before + step.workspace, after);
    for (const Timeline::Read& read : timeline_.reads_of(turn.step)) {
      const Timeline::Value& value = timeline_.values[read.value];
      const bool may_go = value.droppable || (last_use_[read.value] <= turn.step + 1 &&
                                              !turn.is_repeated() && !value.at_the_end);
      if (bit_of_[read.value] == kNone || !may_go) continue;
      const std::size_t alive = before - (read.is_passed_on ? value.bytes : 0);
      if (read.is_passed_on || read.is_destroyed)
        run(alive + (read.is_destroyed ? step.least_workspace : step.workspace),
            after & ~at(read.value));
    }
  }

  Turns turns_to(std::size_t start, std::size_t state) const {
    Turns turns;
    for (; state != start; state = reached_[state].from)
      if (reached_[state].turn.step != kNone) turns.push_back(reached_[state].turn);
    std::reverse(turns.begin(), turns.end());
    return turns;
  }

  const Timeline& timeline_;
  const std::optional<std::size_t> bytes_;
  std::vector<Index> bit_of_;    // by value; kNone: not in the arena
  std::vector<Index> last_use_;  // by value: position after the last step that reads it
  Index bits_ = 0;
  std::vector<Reached> reached_;  // by state: position and bits
  using Entry = std::pair<Cost, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

}  // namespace

std::optional<Turns> fit_exhaustively(const Timeline& timeline, std::optional<std::size_t> bytes) {
  if (timeline.positions() > kMostExhaustive || timeline.values.size() > kMostExhaustive)
    return std::nullopt;
  return Exhaustive(timeline, bytes).run();
}

}  // namespace ebb::detail
