#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>

#include "ebb/graph/passes/timeline.h"

namespace ebb::detail {

namespace {

using Values = std::uint32_t;  // a bit for each value of the arena
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kMostMade = 100'000;  // turns: some 50 ms
constexpr Index kMostSteps = 256;           // a turn looks at all of them

// The A* algorithm over states of a run: the next step of the schedule, and which values are at
// hand. A turn runs that step, or makes again what later steps need. A value goes only when a turn
// has no room else, and then as few as suffice. A state with less at hand than another, for no less
// time, is left out. What a state must yet spend is at least what is to be made again, and for the
// step with the least room the cheapest values that must make room for it.
class BestFirst {
 public:
  BestFirst(const Timeline& timeline, std::size_t bytes)
      : timeline_(timeline),
        bytes_(bytes),
        bit_of_(timeline.values.size(), 0),
        reads_(timeline.steps.size(), 0),
        writes_(timeline.steps.size(), 0),
        made_(timeline.positions() + 1, 0),
        needed_(timeline.positions() + 1, 0),
        useful_(timeline.positions() + 1, 0),
        reached_(timeline.positions()) {
    add_values();
    for (Index s = 0; s < timeline.steps.size(); ++s) {
      for (const Timeline::Read& read : timeline.reads_of(s)) reads_[s] |= bit_of_[read.value];
      for (const Index value : timeline.writes_of(s)) writes_[s] |= bit_of_[value];
    }
    for (Index p = 0; p < timeline.positions(); ++p) made_[p + 1] = made_[p] | writes_[p];
    for (Index p = timeline.positions(); p-- > 0;) needed_[p] = needed_[p + 1] | reads_[p];
    for (Index p = 0; p <= timeline.positions(); ++p) {
      useful_[p] = needed_[p];
      for (Index s = p; s-- > 0;)
        if ((writes_[s] & useful_[p]) && timeline.can_repeat(s, p)) useful_[p] |= reads_[s];
    }
    for (Index p = 0; p < timeline.positions(); ++p) {
      const std::size_t least = working_set(timeline, p);
      if (least > bytes) effort_ = 0;
      room_.push_back(bytes - least);
    }
  }

  // Nothing if the effort does not suffice.
  std::optional<Turns> run() {
    push({.kept = made_[0]}, 0);
    while (!queue_.empty() && effort_ > 0) {
      Index index = std::get<Index>(queue_.top());
      const State state = states_[index];
      queue_.pop();
      if (state.next == timeline_.positions()) {
        Turns turns;
        for (; index != 0; index = states_[index].from) turns.push_back(states_[index].turn);
        std::ranges::reverse(turns);
        return turns;
      }
      const auto covers = [&](const State& other) {
        return other.spent <= state.spent && (state.kept & ~other.kept) == 0;
      };
      std::vector<State>& reached = reached_[state.next];
      if (std::ranges::any_of(reached, covers)) continue;
      reached.push_back(state);
      leave(index);
    }
    if (effort_ > 0) return Turns{};
    return std::nullopt;
  }

 private:
  struct State {
    Values kept = 0;
    Index next = 0;          // position
    std::int64_t spent = 0;  // on repeated steps
    Index from = 0;
    Turn turn = {};
  };

  // A turn to be made.
  struct Run {
    Index from;
    Turn turn;
    std::size_t bytes = 0;  // alive if nothing goes, without workspace
    Values dead = 0;        // nothing reads them later
  };

  // Bits in the order of time to make a value again for each byte of it.
  void add_values() {
    std::vector<std::pair<double, Index>> order;
    for (Index v = 0; v < timeline_.values.size(); ++v)
      if (const std::size_t bytes = timeline_.values[v].bytes; bytes > 0)
        order.emplace_back(
            static_cast<double>(time_of(timeline_.values[v])) / static_cast<double>(bytes), v);
    std::ranges::sort(order);
    for (const auto& [ratio, v] : order) {
      const Timeline::Value& value = timeline_.values[v];
      bit_of_[v] = Values{1} << values_.size();
      values_.push_back(&value);
      if (value.producer == kNone) made_[0] |= bit_of_[v];
      if (value.at_the_end) needed_.back() |= bit_of_[v];
      if (value.droppable) droppable_ |= bit_of_[v];
    }
  }

  const Timeline::Value& first_of(Values values) const {
    return *values_[static_cast<std::size_t>(std::countr_zero(values))];
  }

  // Least time to make a value again from what is at hand.
  std::int64_t time_of(const Timeline::Value& value) const {
    std::int64_t time = kNever;
    for (const Index step : {value.producer, value.restore})
      if (step != kNone) time = std::min(time, timeline_.steps[step].nanoseconds);
    return time;
  }

  std::size_t bytes_of(Values values) const {
    std::size_t sum = 0;
    for (; values != 0; values &= values - 1) sum += first_of(values).bytes;
    return sum;
  }

  // Least time to make again what the steps from `next` on read and is not at hand, with the steps
  // that do it.
  std::int64_t time_to_make(Values kept, Index next, std::vector<Index>* steps = nullptr) const {
    std::int64_t sum = 0;
    Values done = kept;
    for (Values missing = needed_[next] & made_[next] & ~done; missing != 0; missing &= ~done) {
      const Timeline::Value& value = first_of(missing);
      sum += time_of(value);
      if (steps) steps->push_back(value.producer);
      if (value.restore != kNone) {
        if (steps) steps->push_back(value.restore);
        done |= missing & -missing;
      } else {
        if (!value.droppable || !timeline_.can_repeat(value.producer, next)) return kNever;
        done |= writes_[value.producer];
        missing |= reads_[value.producer];
      }
    }
    return sum;
  }

  // Least time to make again what must yet go for the steps from `next` on to have room.
  std::int64_t time_to_drop(Values kept, Index next) const {
    std::int64_t most = 0;
    for (Index p = next; p < timeline_.positions(); ++p) {
      const Values across = needed_[p + 1] & made_[p] & ~reads_[p] & (kept | ~made_[next]);
      std::size_t alive = bytes_of(across);
      std::int64_t sum = 0;
      for (Values c = across & droppable_; c != 0 && alive > room_[p]; c &= c - 1) {
        const Timeline::Value& value = first_of(c);
        const std::size_t bytes = std::min(value.bytes, alive - room_[p]);
        sum += static_cast<std::int64_t>(static_cast<double>(time_of(value)) *
                                         static_cast<double>(bytes) /
                                         static_cast<double>(value.bytes));
        alive -= bytes;
      }
      if (alive > room_[p]) return kNever;
      most = std::max(most, sum);
    }
    return most;
  }

  void leave(Index from) {
    const Values kept = states_[from].kept;
    const Index next = states_[from].next;
    std::vector<Index> steps{next};
    time_to_make(kept, next, &steps);
    for (const Index s : steps) {
      if ((reads_[s] & ~kept) || (s != next && !timeline_.can_repeat(s, next))) continue;
      Run run{from, {s, next}};
      if (!run.turn.is_repeated()) run.dead = ~useful_[next + 1];
      run.bytes = bytes_of(kept & (reads_[s] | ~run.dead));
      const std::span<const Index> writes = timeline_.writes_of(s);
      for (std::size_t k = 0; k < writes.size(); ++k) {
        const Timeline::Value& value = timeline_.values[writes[k]];
        run.bytes += value.bytes;
        if (run.turn.is_repeated() && value.droppable && !(kept & bit_of_[writes[k]]))
          run.turn.renewed |= std::uint32_t{1} << k;
      }
      Values stays = ~droppable_ | run.dead;
      for (const Timeline::Read& read : timeline_.reads_of(s))
        if (!read.is_passed_on && !read.is_destroyed) stays |= bit_of_[read.value];
      drop(run, 0, kept & ~stays);
    }
  }

  bool fits(const Run& run, Values gone) {
    const Timeline::Step& step = timeline_.steps[run.turn.step];
    std::size_t alive = run.bytes - bytes_of(gone & ~reads_[run.turn.step]);
    bool all_destroyed = step.least_workspace != step.workspace, passed = false;
    for (const Timeline::Read& read : timeline_.reads_of(run.turn.step)) {
      const bool goes = (gone | run.dead) & bit_of_[read.value];
      if (read.is_passed_on && !passed && goes) {
        alive -= timeline_.values[read.value].bytes;
        passed = true;
      }
      if (read.is_destroyed && !goes) all_destroyed = false;
    }
    return alive + (all_destroyed ? step.least_workspace : step.workspace) <= bytes_;
  }

  // Makes the turn with these values gone, and with as few others as must go.
  void drop(const Run& run, Values gone, Values others) {
    if (effort_ == 0 || !fits(run, gone | others)) return;
    if (fits(run, gone)) return make(run, gone);
    for (; others != 0; others &= others - 1)
      drop(run, gone | (others & -others), others & (others - 1));
  }

  void make(const Run& run, Values gone) {
    --effort_;
    const State& from = states_[run.from];
    State to{0, from.next, from.spent, run.from, run.turn};
    if (run.turn.is_repeated())
      to.spent += timeline_.steps[run.turn.step].nanoseconds;
    else
      ++to.next;
    to.kept = ((from.kept & ~gone) | writes_[run.turn.step]) & useful_[to.next];
    const std::int64_t made = time_to_make(to.kept, to.next);
    const std::int64_t dropped = time_to_drop(to.kept, to.next);
    if (made == kNever || dropped == kNever) return;
    push(to, to.spent + made + dropped);
  }

  // `least`: time that all repeated steps will have taken at the end.
  void push(const State& state, std::int64_t least) {
    queue_.emplace(least, timeline_.positions() - state.next, static_cast<Index>(states_.size()));
    states_.push_back(state);
  }

  const Timeline& timeline_;
  const std::size_t bytes_;
  std::vector<Values> bit_of_;                  // by value; 0: not in the arena
  std::vector<const Timeline::Value*> values_;  // by bit
  Values droppable_ = 0;
  std::vector<Values> reads_, writes_;  // by step
  // By position: made before it, read from there on, and read there or to make such values again.
  std::vector<Values> made_, needed_, useful_;
  std::vector<std::size_t> room_;  // by position: for what its step does not use
  std::vector<State> states_;
  std::vector<std::vector<State>> reached_;  // by position
  using Entry = std::tuple<std::int64_t, std::size_t, Index>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  std::size_t effort_ = kMostMade;  // turns that may still be made
};

}  // namespace

std::optional<Turns> fit_best_first(const Timeline& timeline, std::size_t bytes) {
  const auto in_arena = [](const Timeline::Value& value) { return value.bytes > 0; };
  if (timeline.positions() > kMostSteps ||
      std::ranges::count_if(timeline.values, in_arena) > std::numeric_limits<Values>::digits)
    return std::nullopt;
  return BestFirst(timeline, bytes).run();
}

}  // namespace ebb::detail
