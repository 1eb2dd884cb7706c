#include <algorithm>
#include <limits>
#include <utility>

#include "ebb/graph/passes/timeline.h"

// Chooses values that are dropped and computed again. A *cut* of a value is a position of the
// schedule: the value is dropped before it, and whoever reads it later computes it again first,
// together with what that needs and is dropped as well. So any set of cuts makes a correct program,
// and the search is free to try.
//
// It starts from segments of equal bytes, of which only the values at the borders are kept (Chen et
// al., "Training deep nets with sublinear memory cost", 2016), and from a greedy choice by cost for
// each byte and turn over the bound (as Jain et al., "Dynamic tensor rematerialization", 2021,
// choose while they run). It then keeps again whatever has come to have room, most work first, and
// repeats that after small random changes.

namespace ebb::detail {

class Recomputation::Search {
  // Where each value is dropped: positions, by value.
  using Cuts = std::vector<std::vector<Index>>;

  struct Candidate {
    Cuts cuts;
    Turns turns = {};
    std::int64_t nanoseconds = 0;  // of the repeated steps
    std::size_t peak_bytes = std::numeric_limits<std::size_t>::max();
  };

 public:
  explicit Search(const Timeline& timeline) : timeline_(timeline), uses_(timeline.values.size()) {
    for (Index p = 0; p < timeline.positions(); ++p) {
      for (const Timeline::Read& read : timeline.reads_of(p)) uses_[read.value].push_back(p);
      for (const Index value : timeline.writes_of(p)) uses_[value].push_back(p);
    }
    plain_.cuts.resize(timeline.values.size());
    for (Index v = 0; v < plain_.cuts.size(); ++v)
      if (timeline.values[v].droppable) {
        plain_.cuts[v].push_back(uses_[v].back() + 1);
        if (timeline.can_repeat(maker(plain_.cuts, v), timeline.values[v].producer + 2))
          droppable_.push_back(v);
      }
    evaluate(plain_);
    top_ = plain_.turns.empty() ? 0 : plain_.turns[usage_.peak_turn].before;
  }

  Turns fit(std::size_t bytes, std::size_t effort) {
    if (const std::optional<Turns> best = fit_exhaustively(timeline_, bytes)) return *best;
    if (least().peak_bytes > bytes) return {};
    effort_ = effort;
    return find(bytes).turns;
  }

  const Candidate& least() {
    if (!least_.turns.empty()) return least_;
    if (const std::optional<Turns> best = fit_exhaustively(timeline_, std::nullopt)) {
      least_.turns = *best;
      return least_;
    }
    effort_ = kLeastTurns;
    least_ = find_least();
    return least_;
  }

 private:
  Candidate find(std::size_t bytes) {
    if (plain_.peak_bytes <= bytes) return plain_;
    std::vector<Candidate> starts = segmented();
    std::stable_sort(starts.begin(), starts.end(), [&](const Candidate& a, const Candidate& b) {
      const bool a_fits = a.peak_bytes <= bytes, b_fits = b.peak_bytes <= bytes;
      if (a_fits != b_fits) return a_fits;
      return a_fits ? a.nanoseconds < b.nanoseconds : a.peak_bytes < b.peak_bytes;
    });
    if (starts.size() > kStarts) starts.resize(kStarts);
    starts.push_back(plain_);
    Candidate best;
    const std::size_t share = effort_ / (2 * starts.size());
    for (Candidate& start : starts) {
      if (!repair(start, bytes, share)) continue;
      relax(start, bytes, share);
      keep_better(best, std::move(start), bytes);
    }
    if (best.peak_bytes > bytes) {
      best = least_;
      relax(best, bytes, effort_ / 2);
    }
    improve(best, bytes);
    return best;
  }

  Candidate find_least() {
    Candidate best = plain_;
    for (Candidate& start : segmented())
      if (start.peak_bytes < best.peak_bytes) best = std::move(start);
    std::size_t below = 0;
    for (Index s = 0; s < timeline_.steps.size(); ++s) below = std::max(below, working_set(s));
    for (int tries = 0; tries < kBisections && below < best.peak_bytes; ++tries) {
      const std::size_t middle = below + (best.peak_bytes - below) / 2;
      Candidate lower = best;
      if (repair(lower, middle, effort_ / 4) && lower.peak_bytes < best.peak_bytes)
        best = std::move(lower);
      else
        below = middle + 1;
    }
    lower(best, below);
    return best;
  }

  static constexpr std::size_t kStarts = 4, kLeastTurns = 5'000'000;
  static constexpr int kBisections = 10, kStale = 300, kStaleLower = 2000;
  static constexpr std::size_t kMostTurns = 8;  // times the steps

  // The least that a step needs: what it reads and writes.
  std::size_t working_set(Index s) const {
    const Timeline::Step& step = timeline_.steps[s];
    std::size_t bytes = step.least_workspace, passed = 0;
    for (const Timeline::Read& read : timeline_.reads_of(s)) {
      bytes += timeline_.values[read.value].bytes;
      if (read.is_passed_on) passed = timeline_.values[read.value].bytes;
    }
    for (const Index value : timeline_.writes_of(s)) bytes += timeline_.values[value].bytes;
    return bytes - passed;
  }

  bool is_dropped(const Cuts& cuts, Index value, Index made, Index at) const {
    for (const Index cut : cuts[value])
      if (made < cut && cut <= at) return timeline_.can_repeat(maker(cuts, value), at);
    return false;
  }

  // The step that makes a dropped value again: its restore if there is one, unless the cuts end
  // with kNone.
  Index maker(const Cuts& cuts, Index value) const {
    const Timeline::Value& of = timeline_.values[value];
    const bool moves = of.restore != kNone && (cuts[value].empty() || cuts[value].back() != kNone);
    return moves ? of.restore : of.producer;
  }

  // Makes the turns that these cuts ask for: each step is repeated just before a reader misses a
  // value of it. Returns whether they are not too many.
  bool make_turns(const Cuts& cuts, Turns& turns) {
    turns.clear();
    made_.assign(timeline_.values.size(), 0);
    const std::size_t most = kMostTurns * timeline_.steps.size();
    for (Index p = 0; p < timeline_.positions(); ++p) {
      for (const Timeline::Read& read : timeline_.reads_of(p))
        if (is_dropped(cuts, read.value, made_[read.value], p))
          repeat(cuts, maker(cuts, read.value), p, turns);
      turns.push_back({p, p});
      for (const Index value : timeline_.writes_of(p)) made_[value] = p;
      if (turns.size() > most) return false;
    }
    effort_ -= std::min(effort_, turns.size());
    return true;
  }

  void repeat(const Cuts& cuts, Index step, Index before, Turns& turns) {
    stack_.push_back({step, 0});
    while (!stack_.empty()) {
      auto& [at, next] = stack_.back();
      const std::span<const Timeline::Read> reads = timeline_.reads_of(at);
      while (next < reads.size() &&
             !is_dropped(cuts, reads[next].value, made_[reads[next].value], before))
        ++next;
      if (next < reads.size()) {
        stack_.push_back({maker(cuts, reads[next].value), 0});
        continue;
      }
      Turn turn{at, before};
      const std::span<const Index> writes = timeline_.writes_of(at);
      for (std::size_t k = 0; k < writes.size(); ++k)
        if (is_dropped(cuts, writes[k], made_[writes[k]], before)) {
          turn.renewed |= std::uint32_t{1} << k;
          made_[writes[k]] = before;
        }
      turns.push_back(turn);
      stack_.pop_back();
    }
  }

  // Makes and measures the candidate's turns; usage_ is of the last one evaluated.
  void evaluate(Candidate& candidate) {
    candidate.nanoseconds = 0;
    candidate.peak_bytes = std::numeric_limits<std::size_t>::max();
    if (!make_turns(candidate.cuts, candidate.turns)) return;
    measure(timeline_, candidate.turns, usage_);
    candidate.peak_bytes = usage_.peak_bytes;
    for (const Turn& turn : candidate.turns)
      if (turn.is_repeated()) candidate.nanoseconds += timeline_.steps[turn.step].nanoseconds;
  }

  static void keep_better(Candidate& best, Candidate&& other, std::size_t bytes) {
    if (other.peak_bytes > bytes) return;
    if (best.peak_bytes > bytes || other.nanoseconds < best.nanoseconds) best = std::move(other);
  }

  // Candidates that drop what is alive at the peak but for the values at borders of segments, for
  // segments of several sizes.
  std::vector<Candidate> segmented() {
    std::vector<Candidate> made;
    std::vector<Index> last_before(timeline_.values.size(), kNone);  // last use before the peak
    std::vector<bool> is_late(timeline_.values.size(), false);       // and it has one after it
    std::size_t in_all = 0, most = 0;
    for (Index v = 0; v < uses_.size(); ++v) {
      if (!timeline_.values[v].droppable || uses_[v].front() > top_) continue;
      const auto after = std::upper_bound(uses_[v].begin(), uses_[v].end(), top_);
      last_before[v] = *std::prev(after);
      is_late[v] = after != uses_[v].end() && last_before[v] < top_;
      if (!is_late[v]) continue;
      in_all += timeline_.values[v].bytes;
      most = std::max(most, timeline_.values[v].bytes);
    }
    if (in_all == 0) return made;
    // Bytes that cross each border: made before it, read after it and before the peak.
    std::vector<std::size_t> crossing(top_ + 1, 0), late(top_ + 1, 0);
    for (Index v = 0; v < uses_.size(); ++v) {
      if (last_before[v] == kNone) continue;
      const Index from = uses_[v].front();
      for (Index q = from; q < last_before[v]; ++q) crossing[q] += timeline_.values[v].bytes;
      if (is_late[v]) late[from] += timeline_.values[v].bytes;
    }
    for (double part = 1; part * static_cast<double>(in_all) >= static_cast<double>(most) / 2;
         part /= kFiner) {
      const auto segment_bytes = static_cast<std::size_t>(part * static_cast<double>(in_all));
      Candidate candidate{plain_.cuts};
      for (Index v = 0; v < uses_.size(); ++v)
        if (is_late[v]) cut(candidate.cuts[v], last_before[v] + 1);
      std::size_t bytes = 0;
      Index begin = 0;
      for (Index q = 0; q < top_; ++q) {
        bytes += late[q];
        if (bytes < segment_bytes) continue;
        // The narrowest border of the segment's second half.
        std::size_t half = bytes;
        Index border = q;
        for (Index at = q; at > begin && half >= segment_bytes / 2; half -= late[at--])
          if (crossing[at] < crossing[border]) border = at;
        for (Index v = 0; v < uses_.size(); ++v)
          if (last_before[v] != kNone && uses_[v].front() <= border && border < last_before[v])
            candidate.cuts[v].clear();
        bytes = 0;
        for (Index at = border + 1; at <= q; ++at) bytes += late[at];
        begin = border + 1;
      }
      evaluate(candidate);
      made.push_back(std::move(candidate));
    }
    return made;
  }
  static constexpr double kFiner = 1.25;

  static void cut(std::vector<Index>& cuts, Index at) {
    const auto before = std::lower_bound(cuts.begin(), cuts.end(), at);
    if (before == cuts.end() || *before != at) cuts.insert(before, at);
  }
  static bool uncut(std::vector<Index>& cuts, Index at) {
    const auto found = std::lower_bound(cuts.begin(), cuts.end(), at);
    if (found == cuts.end() || *found != at) return false;
    cuts.erase(found);
    return true;
  }

  // Time to compute a value again at a position, with whatever else is dropped by then.
  std::int64_t cost_of(const Cuts& cuts, Index value, Index at) {
    constexpr std::size_t kMost = 32;
    std::vector<Index> chain{maker(cuts, value)};
    std::int64_t cost = 0;
    for (std::size_t i = 0; i < chain.size() && i < kMost; ++i) {
      cost += timeline_.steps[chain[i]].nanoseconds;
      for (const Timeline::Read& read : timeline_.reads_of(chain[i])) {
        const Index producer = timeline_.values[read.value].producer;
        if (producer == kNone || !is_dropped(cuts, read.value, producer, at)) continue;
        if (const Index step = maker(cuts, read.value);
            std::find(chain.begin(), chain.end(), step) == chain.end())
          chain.push_back(step);
      }
    }
    return cost;
  }

  // The bytes over the bound, summed over all turns of the last candidate evaluated.
  double excess(std::size_t bytes) const {
    double sum = 0;
    for (const std::size_t alive : usage_.alive)
      if (alive > bytes) sum += static_cast<double>(alive - bytes);
    return sum;
  }

  // Adds cuts until the candidate fits. Returns false if that does not help any more.
  bool repair(Candidate& candidate, std::size_t bytes, std::size_t effort) {
    struct Choice {
      Index value, at;
      double score;
      bool over_peak;
    };
    std::vector<std::pair<Index, Index>> tried;  // in vain
    std::vector<std::size_t> over;               // turns over the bound, before each turn
    std::size_t batch = std::numeric_limits<std::size_t>::max();
    const std::size_t left = effort_ - std::min(effort_, effort);
    evaluate(candidate);
    if (candidate.peak_bytes == std::numeric_limits<std::size_t>::max()) return false;
    while (candidate.peak_bytes > bytes) {
      if (effort_ <= left) return false;
      const double before = excess(bytes);
      over.assign(1, 0);
      for (const std::size_t alive : usage_.alive) over.push_back(over.back() + (alive > bytes));
      std::vector<Choice> choices;
      for (const Gap& gap : usage_.gaps) {
        const Timeline::Value& value = timeline_.values[gap.value];
        const std::size_t turns = over[gap.to] - over[gap.from + 1];
        if (turns == 0 || !value.droppable) continue;
        const Index at = candidate.turns[gap.from].before + 1;
        const Index reader = candidate.turns[gap.to].before;
        if (!timeline_.can_repeat(maker(candidate.cuts, gap.value), reader) ||
            std::binary_search(candidate.cuts[gap.value].begin(), candidate.cuts[gap.value].end(),
                               at) ||
            std::find(tried.begin(), tried.end(), std::pair{gap.value, at}) != tried.end())
          continue;
        const double gain = static_cast<double>(value.bytes) * static_cast<double>(turns);
        choices.push_back({gap.value, at,
                           static_cast<double>(cost_of(candidate.cuts, gap.value, reader)) / gain,
                           gap.from < usage_.peak_turn && usage_.peak_turn < gap.to});
      }
      if (choices.empty()) return false;
      effort_ -= std::min(effort_, kChoiceTurns * choices.size());
      std::stable_sort(choices.begin(), choices.end(),
                       [](const Choice& a, const Choice& b) { return a.score < b.score; });
      const std::size_t wanted = (candidate.peak_bytes - bytes) / 2;
      std::size_t taken = 0, saved = 0;
      for (; taken < std::min(choices.size(), batch) && saved <= wanted; ++taken) {
        cut(candidate.cuts[choices[taken].value], choices[taken].at);
        if (choices[taken].over_peak) saved += timeline_.values[choices[taken].value].bytes;
      }
      evaluate(candidate);
      if (candidate.peak_bytes != std::numeric_limits<std::size_t>::max() &&
          excess(bytes) < before) {
        batch = batch > taken ? batch : 2 * taken;
        continue;
      }
      for (std::size_t i = 0; i < taken; ++i)
        uncut(candidate.cuts[choices[i].value], choices[i].at);
      if (taken == 1) tried.emplace_back(choices[0].value, choices[0].at);
      if (tried.size() > kMostTried) return false;
      batch = std::max<std::size_t>(taken / 2, 1);
      evaluate(candidate);
    }
    return true;
  }
  static constexpr std::size_t kMostTried = 64, kChoiceTurns = 8;

  // Keeps values again where there is room for them, most work first.
  void relax(Candidate& candidate, std::size_t bytes, std::size_t effort) {
    evaluate(candidate);
    std::vector<std::int64_t> repeated(timeline_.steps.size(), 0);
    std::vector<Index> steps;
    for (const Turn& turn : candidate.turns)
      if (turn.is_repeated()) {
        if (repeated[turn.step] == 0) steps.push_back(turn.step);
        repeated[turn.step] += timeline_.steps[turn.step].nanoseconds;
      }
    std::stable_sort(steps.begin(), steps.end(),
                     [&](Index a, Index b) { return repeated[a] > repeated[b]; });
    const std::size_t left = effort_ - std::min(effort_, effort);
    if (timeline_.restores > 0) relax(candidate, bytes, steps, left, true);
    relax(candidate, bytes, steps, left, false);
  }

  // Tries all at once, then each half, while more than `left` of the effort is left: keeps the
  // values, or computes them again in place of a restore.
  void relax(Candidate& candidate, std::size_t bytes, std::span<const Index> steps,
             std::size_t left, bool computes) {
    if (steps.empty() || effort_ <= left) return;
    std::vector<std::pair<Index, std::vector<Index>>> removed;
    for (const Index step : steps)
      for (const Index value : timeline_.writes_of(step)) {
        if (candidate.cuts[value].empty() || (computes && step < timeline_.positions())) continue;
        removed.emplace_back(value, candidate.cuts[value]);
        if (computes)
          cut(candidate.cuts[value], kNone);
        else
          candidate.cuts[value].clear();
      }
    if (removed.empty()) return;
    const std::int64_t before = candidate.nanoseconds;
    const std::size_t peak_bytes = candidate.peak_bytes;
    evaluate(candidate);
    if (candidate.peak_bytes <= bytes && candidate.nanoseconds < before) return;
    for (auto& [value, cuts] : removed) candidate.cuts[value] = std::move(cuts);
    candidate.nanoseconds = before;
    candidate.peak_bytes = peak_bytes;
    if (steps.size() == 1) return;
    relax(candidate, bytes, steps.first(steps.size() / 2), left, computes);
    relax(candidate, bytes, steps.subspan(steps.size() / 2), left, computes);
  }

  // Drops a few values more or at other times, keeps others in their place, and takes that if it is
  // not more work.
  void improve(Candidate& best, std::size_t bytes) {
    const std::size_t left = effort_ / 2;
    for (int stale = 0; stale < kStale && effort_ > left && best.nanoseconds > 0; ++stale) {
      Candidate other{best.cuts};
      if (!change(other)) return;
      evaluate(other);
      if (other.peak_bytes > bytes) continue;
      relax(other, bytes, effort_ - left);
      if (other.nanoseconds < best.nanoseconds) stale = 0;
      if (other.nanoseconds <= best.nanoseconds) best = std::move(other);
    }
    evaluate(best);
  }

  // Tries small changes for fewer bytes at the peak, or as many at fewer turns.
  void lower(Candidate& best, std::size_t below) {
    const std::size_t left = effort_ - effort_ / 4;
    evaluate(best);
    double near = excess(best.peak_bytes - best.peak_bytes / 8);
    for (int stale = 0; stale < kStaleLower && effort_ > left && best.peak_bytes > below; ++stale) {
      Candidate other{best.cuts};
      if (!change(other)) return;
      evaluate(other);
      if (other.peak_bytes > best.peak_bytes) continue;
      const double other_near = excess(best.peak_bytes - best.peak_bytes / 8);
      const bool is_lower = other.peak_bytes < best.peak_bytes;
      if (!is_lower && other_near > near) continue;
      if (is_lower || other_near < near) stale = 0;
      best = std::move(other);
      near = excess(best.peak_bytes - best.peak_bytes / 8);
    }
    evaluate(best);
  }

  // Changes up to three random cuts, each just after a use of the value or at any later position.
  bool change(Candidate& candidate) {
    if (droppable_.empty()) return false;
    for (std::size_t n = 1 + random_below(3); n > 0; --n) {
      const Index value = droppable_[random_below(droppable_.size())];
      const std::vector<Index>& uses = uses_[value];
      std::size_t at = uses[random_below(uses.size())] + 1;
      if (random_below(4) == 0) at += random_below(timeline_.positions() - at + 1);
      if (timeline_.values[value].restore != kNone && random_below(4) == 0) at = kNone;
      std::vector<Index>& cuts = candidate.cuts[value];
      if (!uncut(cuts, static_cast<Index>(at))) cut(cuts, static_cast<Index>(at));
    }
    return true;
  }

  std::size_t random_below(std::size_t n) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(random_ >> 33) % n;
  }

  const Timeline& timeline_;
  std::size_t effort_ = kLeastTurns;      // turns that may still be made
  std::vector<std::vector<Index>> uses_;  // by value: positions, ascending
  Candidate least_;
  Candidate plain_;  // repeats nothing
  Index top_ = 0;    // its peak
  Usage usage_;
  std::vector<Index> made_;  // by value: position before which it was last made
  struct Frame {
    Index step;
    std::size_t next;  // read
  };
  std::vector<Frame> stack_;
  std::vector<Index> droppable_;  // values that can be computed again
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
