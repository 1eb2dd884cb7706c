#include <algorithm>
#include <numeric>
#include <random>
#include <unordered_set>
#include <utility>

#include "ebb/graph/passes/passes.h"
#include "ebb/graph/passes/timeline.h"

namespace ebb::detail {

namespace {

// Searches for orders depth first. The set of steps that have run says what is alive, so no set is
// entered twice. A step that fits and leaves no more alive runs at once, since no order gains by
// keeping it waiting. Else the step that became ready last goes first: branch follows branch. The
// effort is counted in steps looked at; a small graph is searched in full.
class OrderSearch {
 public:
  // `known` is any order; the timeline is that of the steps by their numbers.
  OrderSearch(const Draft& draft, const Timeline& timeline, const std::vector<Index>& known)
      : draft_(draft), timeline_(timeline), known_(known), keys_(known.size()) {
    std::mt19937_64 random;
    std::ranges::generate(keys_, random);
  }

  // The best order that it finds, of those that keep fewer than `bytes` alive, the most of the
  // known order, which are at `peak_step`.
  std::vector<Index> best(std::int64_t bytes, Index peak_step) {
    const auto count = static_cast<Index>(known_.size());
    std::int64_t low = bound_at(peak_step);
    for (Index s = 0; s < count && low < bytes; s += 1 + count / kBounds)
      low = std::max(low, bound_at(s));
    std::vector<Index> best;
    for (std::int64_t most = bytes - 1; low < bytes && effort_ > 0;
         most = low + (bytes - low) / 2) {
      if (search(most, false) || search(most, true)) {
        best = order_;
        bytes = sets_.back().peak;
      } else {
        low = most + 1;
      }
    }
    return best;
  }

 private:
  static constexpr Index kBounds = 32;
  static constexpr std::size_t kEffort = 2'000'000, kSearchEffort = kEffort / 8, kMostLooks = 32;

  // Steps that have run.
  struct Set {
    std::int64_t alive = 0, peak = 0;  // bytes
    std::uint64_t hash = 0;
    std::size_t at = 0;  // of the last step, in ready_ before it ran
  };

  std::int64_t bytes_of(Index value) const {
    return static_cast<std::int64_t>(timeline_.values[value].bytes);
  }

  // Bytes alive while a step runs and after it, beside those alive before. See measure().
  struct Change {
    std::int64_t during = 0, after = 0;
  };
  Change change(Index s) const {
    const Timeline::Step& step = timeline_.steps[s];
    Change change;
    for (const Index value : timeline_.writes_of(s)) {
      change.during += bytes_of(value);
      if (reads_left_[value] > 0) change.after += bytes_of(value);
    }
    bool is_passed_on = false, all_destroyed = true;
    for (const Timeline::Read& read : timeline_.reads_of(s)) {
      const bool is_last = reads_left_[read.value] == 1;
      if (is_last) change.after -= bytes_of(read.value);
      if (is_last && read.is_passed_on && !std::exchange(is_passed_on, true))
        change.during -= bytes_of(read.value);
      if (read.is_destroyed && !is_last) all_destroyed = false;
    }
    change.during +=
        static_cast<std::int64_t>(all_destroyed ? step.least_workspace : step.workspace);
    return change;
  }

  // Counts the reads of each value by the chosen steps, and by a fetch at the end.
  void count_reads(const std::vector<bool>& is_chosen) {
    reads_left_.assign(timeline_.values.size(), 0);
    for (Index s = 0; s < is_chosen.size(); ++s)
      if (is_chosen[s])
        for (const Timeline::Read& read : timeline_.reads_of(s)) ++reads_left_[read.value];
    for (Index v = 0; v < reads_left_.size(); ++v) reads_left_[v] += timeline_.values[v].at_the_end;
  }

  // Bytes alive at a step in any order: of values that are made before it in all of them, and read
  // by it or after it.
  std::int64_t bound_at(Index step) {
    std::vector<bool> before(known_.size(), false), after(known_.size(), false);
    for (auto s = known_.rbegin(); s != known_.rend(); ++s)
      for (const Index next : draft_.waiting_for(*s))
        if (next == step || before[next]) before[*s] = true;
    after[step] = true;
    for (const Index s : known_)
      if (after[s])
        for (const Index next : draft_.waiting_for(s)) after[next] = true;
    count_reads(after);
    std::int64_t alive = 0;
    for (Index v = 0; v < reads_left_.size(); ++v)
      if (const Index producer = timeline_.values[v].producer;
          reads_left_[v] > 0 && (producer == kNone || before[producer]))
        alive += bytes_of(v);
    return alive + change(step).during;
  }

  // Finds an order_ that keeps at most `most` bytes alive. Steps that wait for none are tried by
  // what they leave alive: the least first, for small values that all branches read, or the most.
  bool search(std::int64_t most, bool largest_first) {
    const std::size_t until = effort_ - std::min(effort_, kSearchEffort);
    count_reads(std::vector<bool>(known_.size(), true));
    waits_.assign(known_.size(), 0);
    for (const Index to : draft_.edges) ++waits_[to];
    ready_.clear();
    for (auto s = static_cast<Index>(known_.size()); s-- > 0;)
      if (waits_[s] == 0) ready_.push_back(s);
    std::ranges::stable_sort(
        ready_, {}, [&](Index s) { return largest_first ? change(s).after : -change(s).after; });
    Set none;
    for (Index v = 0; v < reads_left_.size(); ++v)
      if (timeline_.values[v].producer == kNone && reads_left_[v] > 0) none.alive += bytes_of(v);
    sets_.assign(1, none);
    order_.clear();
    entered_.clear();
    for (std::size_t below = kEnter; order_.size() < known_.size();) {
      const std::size_t at = choose(most, below);
      if (effort_ <= until) return false;
      if (at != kNowhere) {
        run(at);
        below = kEnter;
      } else if (!order_.empty()) {
        below = go_back();
      } else {
        return false;
      }
    }
    return true;
  }
  static constexpr std::size_t kNowhere = ~std::size_t{0}, kEnter = kNowhere;

  // Position in ready_ of the step that runs next: below that of the last one tried, if any was.
  std::size_t choose(std::int64_t most, std::size_t below) {
    const Set& now = sets_.back();
    std::size_t found = kNowhere;
    for (std::size_t i = std::min(below, ready_.size()), looks = 0; i-- > 0; ++looks) {
      if (found != kNowhere && (below != kEnter || looks >= kMostLooks)) break;
      effort_ -= effort_ > 0;
      const Change step = change(ready_[i]);
      if (now.alive + step.during > most) continue;
      if (below == kEnter && step.after <= 0) return i;
      if (found == kNowhere) found = i;
    }
    if (below == kEnter && !entered_.insert(now.hash).second) return kNowhere;
    return found;
  }

  void run(std::size_t at) {
    const Index s = ready_[at];
    const Change step = change(s);
    const Set& now = sets_.back();
    sets_.push_back({now.alive + step.after, std::max(now.peak, now.alive + step.during),
                     now.hash ^ keys_[s], at});
    order_.push_back(s);
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(at));
    for (const Timeline::Read& read : timeline_.reads_of(s)) --reads_left_[read.value];
    for (const Index next : draft_.waiting_for(s))
      if (--waits_[next] == 0) ready_.push_back(next);
  }

  // Takes the last step back. Returns its position in ready_, or 0 if no other need be tried.
  std::size_t go_back() {
    const Index s = order_.back();
    for (const Index next : draft_.waiting_for(s))
      if (waits_[next]++ == 0) ready_.pop_back();
    for (const Timeline::Read& read : timeline_.reads_of(s)) ++reads_left_[read.value];
    const auto [alive, peak, hash, at] = sets_.back();
    ready_.insert(ready_.begin() + static_cast<std::ptrdiff_t>(at), s);
    order_.pop_back();
    sets_.pop_back();
    return alive <= sets_.back().alive ? 0 : at;
  }

  const Draft& draft_;
  const Timeline& timeline_;
  const std::vector<Index>& known_;
  std::vector<std::uint64_t> keys_;  // by step: a set's hash is those of its steps
  std::size_t effort_ = kEffort;     // left
  std::vector<Set> sets_;            // before each step of the order, and after the last
  std::unordered_set<std::uint64_t> entered_;
  std::vector<Index> order_, ready_;
  std::vector<Index> waits_;       // by step: edges from steps that have not run
  std::vector<Index> reads_left_;  // by value
};

}  // namespace

std::optional<Schedule> reorder(const Draft& draft, const Schedule& schedule) {
  const memory::Placement& layout = schedule.layout;
  if (layout.peak_step >= schedule.order.size()) return std::nullopt;  // of fetched values
  Schedule reordered;
  reordered.order.resize(draft.steps.size());
  std::iota(reordered.order.begin(), reordered.order.end(), Index{0});
  const Timeline timeline = make_timeline(draft, reordered);
  reordered.is_reordered = true;
  reordered.order = OrderSearch(draft, timeline, schedule.order)
                        .best(static_cast<std::int64_t>(layout.lower_bound_bytes),
                              schedule.order[layout.peak_step]);
  if (reordered.order.empty()) return std::nullopt;
  return reordered;
}

}  // namespace ebb::detail
