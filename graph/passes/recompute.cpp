#include <algorithm>
#include <limits>
#include <utility>

#include "ebb/graph/passes/timeline.h"

// Chooses values that are dropped and computed again, or brought back from the host. A candidate is
// a list of turns: the schedule, with repeated steps anywhere after their first run. A value lives
// from each time it is made to the last read before the next. So any list is a correct program, and
// the search is free to try.
//
// It starts from segments of equal bytes, of which only the values at the borders are kept (Chen et
// al., "Training deep nets with sublinear memory cost", 2016), and from a greedy choice by cost for
// each byte and turn over the bound (as Jain et al., "Dynamic tensor rematerialization", 2021,
// choose while they run). It then anneals the best lists by small random changes, which may exceed
// the bound.

namespace ebb::detail {

class Recomputation::Search {
  struct Candidate {
    Turns turns = {};
    std::int64_t nanoseconds = 0;  // extra_nanoseconds()
    std::size_t peak_bytes = std::numeric_limits<std::size_t>::max();
  };

 public:
  explicit Search(const Timeline& timeline) : timeline_(timeline) {
    for (Index p = 0; p < timeline.positions(); ++p) {
      plain_.turns.push_back({p, p});
      nanoseconds_ += static_cast<double>(timeline.steps[p].nanoseconds);
      working_set_ = std::max(working_set_, working_set(timeline, p));
    }
    evaluate(plain_);
  }

  Turns fit(std::size_t bytes, std::size_t effort) {
    if (plain_.peak_bytes <= bytes) return plain_.turns;
    if (bytes < working_set_) return {};
    const std::optional<Turns> found = fit_best_first(timeline_, bytes);
    if (found && !found->empty()) return *found;
    effort_ = effort;
    Candidate best = least_;
    std::vector<Candidate> starts = segmented(bytes);
    std::ranges::stable_sort(starts, [&](const Candidate& a, const Candidate& b) {
      const bool a_fits = a.peak_bytes <= bytes, b_fits = b.peak_bytes <= bytes;
      if (a_fits != b_fits) return a_fits;
      return a_fits ? a.nanoseconds < b.nanoseconds : a.peak_bytes < b.peak_bytes;
    });
    starts.resize(std::min<std::size_t>(starts.size(), 1));
    starts.push_back(plain_);
    const std::size_t share = effort / (2 * starts.size());
    for (Candidate& start : starts)
      if (repair(start, bytes, share) &&
          (best.peak_bytes > bytes || start.nanoseconds < best.nanoseconds))
        best = std::move(start);
    if (best.peak_bytes > bytes) return {};
    for (int tries = 0; tries < 2; ++tries) anneal(best, best, bytes);
    return best.turns;
  }

  const Candidate& least() {
    if (!least_.turns.empty()) return least_;
    effort_ = limited(4 * kAnnealPasses, 8 * kLeastAnnealTurns, kLeastTurns);
    std::vector<Candidate> starts = segmented(0);
    starts.push_back(plain_);
    const auto lower = std::ranges::min_element(starts, {}, &Candidate::peak_bytes);
    least_ = *lower;
    for (Candidate start : {plain_, *lower}) {
      std::size_t low = working_set_;
      while (low + least_.peak_bytes / kPrecision < least_.peak_bytes) {
        const std::size_t middle = low + (least_.peak_bytes - low) / 2;
        Candidate next = start;
        if (repair(next, middle, effort_ / 4))
          least_ = start = std::move(next);
        else
          low = middle + 1;
      }
    }
    for (int tries = 0; tries < kTries && least_.peak_bytes > working_set_;)
      tries = anneal(least_, least_, least_.peak_bytes - 1) ? 0 : tries + 1;
    while (least_.peak_bytes > working_set_) {
      std::optional<Turns> lower = fit_best_first(timeline_, least_.peak_bytes - 1);
      if (!lower || lower->empty()) break;
      evaluate(least_ = {std::move(*lower)});
    }
    return least_;
  }

 private:
  static constexpr std::size_t kLeastTurns = 15'000'000;
  static constexpr std::size_t kMostTurns = 8;    // times the steps
  static constexpr std::size_t kPrecision = 200;  // parts of the least that bisection leaves
  static constexpr int kTries = 2;

  // The turns of so many passes over all steps, within bounds.
  std::size_t limited(std::size_t passes, std::size_t least, std::size_t most) const {
    return std::clamp(passes * timeline_.steps.size(), least, most);
  }

  // Measures a candidate; usage_ is of the last one.
  void evaluate(Candidate& candidate) {
    effort_ -= std::min(effort_, candidate.turns.size());
    measure(timeline_, candidate.turns, usage_);
    candidate.peak_bytes = usage_.peak_bytes;
    candidate.nanoseconds = extra_nanoseconds(timeline_, candidate.turns);
  }

  bool can_repeat(Index value, Index before) const {
    return timeline_.values[value].droppable && timeline_.can_repeat(maker(value), before);
  }

  // The step that makes a value again.
  Index maker(Index value) const {
    const Timeline::Value& of = timeline_.values[value];
    return moves_ && of.restore != kNone ? of.restore : of.producer;
  }

  Turn repeat(Index step, Index before) const {
    Turn turn{step, before};
    const std::span<const Index> writes = timeline_.writes_of(step);
    for (std::size_t k = 0; k < writes.size(); ++k)
      if (timeline_.values[writes[k]].droppable) turn.renewed |= std::uint32_t{1} << k;
    return turn;
  }

  // A turn that makes a value or reads it; `missing`: that will read it once it is made again.
  struct Event {
    Index turn;
    enum { read, made, missing } kind;
  };

  void find_events(const Turns& turns) {
    events_.resize(timeline_.values.size());
    for (std::vector<Event>& events : events_) events.clear();
    made_.assign(timeline_.values.size(), kNone);
    for (Index t = 0; t < turns.size(); ++t) {
      for (const Timeline::Read& read : timeline_.reads_of(turns[t].step))
        events_[read.value].push_back({t, Event::read});
      for (const Index value : timeline_.writes_of(turns[t].step))
        events_[value].push_back({t, Event::made});
    }
  }

  // The first event from a turn on; none if that is null.
  Event* event_from(Index value, Index turn) {
    const auto at = std::ranges::lower_bound(events_[value], turn, {}, &Event::turn);
    return at == events_[value].end() ? nullptr : &*at;
  }

  bool is_at_hand(Index value, Index turn, Index before) {
    if (made_[value] == turn || !can_repeat(value, before) ||
        timeline_.values[value].producer < segment_)
      return true;
    const Event* event = event_from(value, turn);
    return event && event->kind == Event::read;
  }

  // Makes values again at the end of gaps, with whatever else that needs and is not at hand. Empty
  // if that takes too many turns. The events are those of the turns, and are used up.
  Turns close(const Turns& turns, std::span<const Gap> gaps) {
    for (const Gap& gap : gaps) event_from(gap.value, gap.to)->kind = Event::missing;
    Turns result;
    result.reserve(turns.size() + 4 * gaps.size());
    for (Index t = 0; t < turns.size(); ++t) {
      for (const Timeline::Read& read : timeline_.reads_of(turns[t].step))
        if (event_from(read.value, t)->kind == Event::missing)
          make(read.value, t, turns[t].before, result);
      result.push_back(turns[t]);
      if (result.size() > kMostTurns * timeline_.steps.size()) return {};
    }
    return result;
  }

  void make(Index value, Index turn, Index before, Turns& result) {
    const auto border = std::ranges::lower_bound(borders_, timeline_.values[value].producer);
    segment_ = border == borders_.begin() ? 0 : border[-1] + 1;
    stack_.push_back({maker(value), 0});
    while (!stack_.empty()) {
      auto& [step, next] = stack_.back();
      const std::span<const Timeline::Read> reads = timeline_.reads_of(step);
      while (next < reads.size() && is_at_hand(reads[next].value, turn, before)) ++next;
      if (next < reads.size()) {
        stack_.push_back({maker(reads[next].value), 0});
        continue;
      }
      result.push_back(repeat(step, before));
      for (const Index written : timeline_.writes_of(step)) {
        made_[written] = turn;
        if (Event* event = event_from(written, turn); event && event->kind == Event::missing)
          event->kind = Event::read;
      }
      stack_.pop_back();
    }
    segment_ = 0;
  }

  // Time to make a value again before a turn.
  std::int64_t cost_of(Index value, Index turn, Index before) {
    constexpr std::size_t kMost = 16;
    std::vector<Index> chain{maker(value)};
    std::int64_t cost = 0;
    for (std::size_t i = 0; i < chain.size() && i < kMost; ++i) {
      cost += timeline_.steps[chain[i]].nanoseconds;
      for (const Timeline::Read& read : timeline_.reads_of(chain[i])) {
        const Index producer = maker(read.value);
        if (!is_at_hand(read.value, turn, before) &&
            std::ranges::find(chain, producer) == chain.end())
          chain.push_back(producer);
      }
    }
    return cost;
  }

  // Candidates that drop what is alive over the peak but for the values at borders of segments, for
  // segments of several sizes: of the fewest first segments that suffice, or of all.
  std::vector<Candidate> segmented(std::size_t bytes) {
    evaluate(plain_);
    std::vector<Gap> gaps;
    std::size_t in_all = 0, most = 0;
    for (const Gap& gap : usage_.gaps) {
      if (gap.from >= usage_.peak_turn || gap.to <= usage_.peak_turn ||
          !can_repeat(gap.value, gap.to))
        continue;
      gaps.push_back(gap);
      in_all += timeline_.values[gap.value].bytes;
      most = std::max(most, timeline_.values[gap.value].bytes);
    }
    const auto producer = [&](const Gap& gap) { return timeline_.values[gap.value].producer; };
    std::ranges::stable_sort(gaps,
                             [&](const Gap& a, const Gap& b) { return producer(a) < producer(b); });
    std::vector<Candidate> found;
    for (std::size_t segment = in_all; segment > 0 && segment >= most / 2;
         segment = segment * 4 / 5) {
      borders_.clear();
      std::size_t sum = 0;
      for (const Gap& gap : gaps) {
        sum += timeline_.values[gap.value].bytes;
        if (sum < segment) continue;
        borders_.push_back(producer(gap));
        sum = 0;
      }
      const auto with_closed = [&](std::size_t segments) {
        std::vector<Gap> closed;
        for (const Gap& gap : gaps) {
          const auto border = std::ranges::lower_bound(borders_, producer(gap));
          if (static_cast<std::size_t>(border - borders_.begin()) < segments &&
              (border == borders_.end() || *border >= gap.from))
            closed.push_back(gap);
        }
        find_events(plain_.turns);
        Candidate candidate{close(plain_.turns, closed)};
        if (!candidate.turns.empty()) evaluate(candidate);
        return candidate;
      };
      // The last segment is needed at once: closing it seldom helps.
      Candidate candidate = with_closed(borders_.size());
      if (candidate.peak_bytes > bytes) {
        Candidate all = with_closed(borders_.size() + 1);
        if (all.peak_bytes < candidate.peak_bytes) candidate = std::move(all);
      } else {
        for (std::size_t low = 0, high = borders_.size(); high - low > 1;) {
          const std::size_t middle = low + (high - low) / 2;
          Candidate fewer = with_closed(middle);
          const bool fits = fewer.peak_bytes <= bytes;
          if (fits) candidate = std::move(fewer);
          (fits ? high : low) = middle;
        }
      }
      if (candidate.turns.empty()) continue;
      found.push_back(std::move(candidate));
    }
    borders_.clear();
    return found;
  }

  // The bytes over the bound, summed over all turns of the last candidate evaluated.
  double excess(std::size_t bytes) const {
    double sum = 0;
    for (const std::size_t alive : usage_.alive)
      if (alive > bytes) sum += static_cast<double>(alive - bytes);
    return sum;
  }

  // Closes gaps until the candidate fits. Returns false if that does not help any more.
  bool repair(Candidate& candidate, std::size_t bytes, std::size_t effort) {
    struct Choice {
      Gap gap;
      double score;
      bool over_peak;
    };
    std::vector<std::pair<Index, Index>> tried;  // values and their readers, in vain
    std::vector<std::size_t> over;               // turns over the bound, before each turn
    std::size_t batch = std::numeric_limits<std::size_t>::max();
    const std::size_t left = effort_ - std::min(effort_, effort);
    while (candidate.peak_bytes > bytes) {
      if (effort_ <= left || tried.size() > kMostTried) return false;
      evaluate(candidate);
      find_events(candidate.turns);
      const double before = excess(bytes);
      over.assign(1, 0);
      for (const std::size_t alive : usage_.alive) over.push_back(over.back() + (alive > bytes));
      std::vector<Choice> choices;
      for (const Gap& gap : usage_.gaps) {
        const std::size_t turns = over[gap.to] - over[gap.from + 1];
        const Index reader = candidate.turns[gap.to].before;
        if (turns == 0 || !can_repeat(gap.value, reader) ||
            std::ranges::find(tried, std::pair{gap.value, reader}) != tried.end())
          continue;
        const double gain =
            static_cast<double>(timeline_.values[gap.value].bytes) * static_cast<double>(turns);
        choices.push_back({gap, static_cast<double>(cost_of(gap.value, gap.to, reader)) / gain,
                           gap.from < usage_.peak_turn && usage_.peak_turn < gap.to});
      }
      if (choices.empty()) return false;
      effort_ -= std::min(effort_, kChoiceTurns * choices.size());
      std::ranges::stable_sort(choices, {}, &Choice::score);
      const std::size_t wanted = (candidate.peak_bytes - bytes) / 2;
      std::size_t saved = 0;
      std::vector<Gap> closed;
      while (closed.size() < std::min(choices.size(), batch) && saved <= wanted) {
        const Choice& choice = choices[closed.size()];
        closed.push_back(choice.gap);
        if (choice.over_peak) saved += timeline_.values[choice.gap.value].bytes;
      }
      Candidate other{close(candidate.turns, closed)};
      if (!other.turns.empty()) evaluate(other);
      if (!other.turns.empty() && excess(bytes) < before) {
        candidate = std::move(other);
        batch = std::max(batch, 2 * closed.size());
        continue;
      }
      if (closed.size() == 1)
        tried.emplace_back(closed[0].value, candidate.turns[closed[0].to].before);
      batch = std::max<std::size_t>(closed.size() / 2, 1);
    }
    return true;
  }
  static constexpr std::size_t kMostTried = 64, kChoiceTurns = 8;

  // Simulated annealing, from `now` on; bytes over the bound count as work. Returns whether `best`
  // has become better. If it does not fit yet, the first candidate that does ends it.
  bool anneal(Candidate& best, Candidate now, std::size_t bytes) {
    const bool fits = best.peak_bytes <= bytes;
    const double step = nanoseconds_ / static_cast<double>(timeline_.steps.size());
    const auto score = [&](const Candidate& candidate) {
      return static_cast<double>(candidate.nanoseconds) +
             kExcessSteps * step * excess(bytes) / static_cast<double>(bytes);
    };
    const std::size_t effort =
        std::min(effort_ / 2, limited(kAnnealPasses, kLeastAnnealTurns, kMostAnnealTurns));
    const std::size_t left = effort_ - effort;
    evaluate(now);
    double score_now = score(now);
    bool is_better = false;
    while (effort_ > left) {
      Candidate other{now.turns};
      change(other.turns);
      evaluate(other);
      if (other.peak_bytes <= bytes && (!fits || other.nanoseconds < best.nanoseconds)) {
        best = other;
        if (!fits) return true;
        is_better = true;
      }
      const double warmth = (fits ? kWarmSteps : kHotSteps) * step *
                            static_cast<double>(effort_ - left) / static_cast<double>(effort);
      const double score_other = score(other);
      if (score_other > score_now + warmth * static_cast<double>(random_below(1024)) / 1024)
        continue;
      now = std::move(other);
      score_now = score_other;
    }
    return is_better;
  }
  static constexpr std::size_t kAnnealPasses = 1000, kLeastAnnealTurns = 100'000,
                               kMostAnnealTurns = 1'000'000;
  static constexpr double kExcessSteps = 200, kWarmSteps = 2, kHotSteps = 16;

  // Makes up to four random changes: leaves out or moves a repeated step, or makes a value again
  // before a step that reads it, alone or with what else is not at hand.
  void change(Turns& turns) {
    for (std::size_t n = 1 + random_below(4); n > 0; --n) {
      const std::size_t repeats = turns.size() - timeline_.positions();
      if (repeats > 0 && random_below(2) == 0) {
        std::size_t at = 0;
        for (std::size_t k = random_below(repeats); !turns[at].is_repeated() || k-- > 0;) ++at;
        const Index step = turns[at].step;
        turns.erase(turns.begin() + static_cast<std::ptrdiff_t>(at));
        if (random_below(3) == 0) insert(turns, random_below(turns.size()), step);
        continue;
      }
      const auto at = static_cast<Index>(random_below(turns.size()));
      const std::span<const Timeline::Read> reads = timeline_.reads_of(turns[at].step);
      if (reads.empty()) continue;
      const Index value = reads[random_below(reads.size())].value, before = turns[at].before;
      moves_ = timeline_.restores > 0 && random_below(4) != 0;
      if (!can_repeat(value, before)) continue;
      if (random_below(2) == 0) {
        insert(turns, at, maker(value));
      } else {
        find_events(turns);
        Turns made;
        make(value, at, before, made);
        if (turns.size() + made.size() <= kMostTurns * timeline_.steps.size())
          turns.insert(turns.begin() + at, made.begin(), made.end());
      }
    }
    moves_ = true;
  }

  void insert(Turns& turns, std::size_t at, Index step) const {
    const Index before = turns[at].before;
    const Index made = step < timeline_.positions()
                           ? step
                           : timeline_.values[timeline_.writes_of(step)[0]].producer;
    if (made < before && timeline_.can_repeat(step, before))
      turns.insert(turns.begin() + static_cast<std::ptrdiff_t>(at), repeat(step, before));
  }

  std::size_t random_below(std::size_t n) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(random_ >> 33) % n;
  }

  const Timeline& timeline_;
  double nanoseconds_ = 0;            // of all steps, once
  std::size_t working_set_ = 0;       // the largest of a step: no turns keep less
  std::size_t effort_ = kLeastTurns;  // turns that may still be made
  Candidate plain_;                   // repeats nothing
  Candidate least_;
  bool moves_ = true;  // whether values that may come from the host do
  Usage usage_;
  std::vector<std::vector<Event>> events_;  // by value
  std::vector<Index> made_;                 // by value: turn before which it was last made again
  std::vector<Index> borders_;              // steps after which segments end
  Index segment_ = 0;                       // first step of one: what was made before it is kept
  struct Frame {
    Index step;
    std::size_t next;  // read
  };
  std::vector<Frame> stack_;
  std::uint64_t random_ = 0x9E3779B97F4A7C15;
};

Recomputation::Recomputation(const Timeline& timeline)
    : search_(std::make_unique<Search>(timeline)) {}
Recomputation::~Recomputation() = default;
const Turns& Recomputation::least() { return search_->least().turns; }
Turns Recomputation::fit(std::size_t bytes, std::size_t effort) {
  return search_->fit(bytes, effort);
}

}  // namespace ebb::detail
