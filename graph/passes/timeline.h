#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ebb/core/base/no_copy.h"
#include "ebb/core/memory/plan.h"
#include "ebb/graph/passes/draft.h"

namespace ebb::detail {

// A schedule as the search for values to compute again sees it. Steps are named by their position
// in the schedule, values are the memories of the arena.
struct Timeline {
  struct Value {
    std::size_t bytes = 0;    // in the arena; 0 for a fetched tensor, which repeats rewrite
    Index producer = kNone;   // position of the step that writes it
    Index restore = kNone;    // step that copies it back from page-locked memory, if it may move
    bool at_the_end = false;  // a fetch reads it after the last step
    bool droppable = false;
  };
  struct Read {
    Index value = kNone;
    bool is_passed_on = false;  // output 0 may take over its memory
    bool is_destroyed = false;  // the kernel may use it up in place of workspace
  };
  struct Step {
    Index first_read = 0, reads = 0;
    Index first_write = 0, writes = 0;
    Index until = 0;  // last position before which the step may be repeated; 0: never
    std::int64_t nanoseconds = 0;
    std::int64_t hidden_nanoseconds = 0;             // of a restore: most that other steps can hide
    std::size_t workspace = 0, least_workspace = 0;  // bytes; the least if all it may is destroyed
  };
  std::vector<Step> steps;  // in the schedule; then restores, which run only as repeated steps
  Index restores = 0;
  std::int64_t hidden_nanoseconds = 0;  // most that other steps can hide of all restores
  std::vector<Value> values;
  std::vector<Read> reads;
  std::vector<Index> writes;    // values
  std::vector<Index> value_of;  // by memory of the draft

  std::span<const Read> reads_of(Index step) const noexcept {
    return {reads.data() + steps[step].first_read, steps[step].reads};
  }
  std::span<const Index> writes_of(Index step) const noexcept {
    return {writes.data() + steps[step].first_write, steps[step].writes};
  }
  Index positions() const noexcept { return static_cast<Index>(steps.size()) - restores; }
  bool can_repeat(Index step, Index before) const noexcept { return before <= steps[step].until; }
};

// A step that runs. `before` is the position of the step that it is repeated for, or its own.
struct Turn {
  Index step = 0, before = 0;
  std::uint32_t renewed = 0;  // outputs whose later readers read this turn's; others are not read
  bool is_repeated() const noexcept { return step != before; }
};
using Turns = std::vector<Turn>;

// The time between two reads of a value, or between its making and the first.
struct Gap {
  Index value = 0;
  Index from = 0, to = 0;  // turns
};

// The bytes alive at each turn.
struct Usage {
  std::vector<std::size_t> alive;
  std::vector<Gap> gaps;  // that end before another step than they begin at
  std::size_t peak_bytes = 0, peak_turn = 0;
};

Timeline make_timeline(const Draft& draft, const Schedule& schedule);

// Work of a step: multiply-adds and bytes read and written, by shapes alone.
memory::Work work_of(const Draft& draft, const DraftStep& step);
memory::Work work_of(const Draft& draft);  // of all steps
// Time estimated from the constants of the profile.
std::int64_t estimated_nanoseconds(const memory::Work& work, const memory::Profile& profile);

// The least that a step needs: what it reads and writes. No turns keep less.
std::size_t working_set(const Timeline& timeline, Index step);

// Time of the repeated steps, less what other steps can hide.
std::int64_t extra_nanoseconds(const Timeline& timeline, const Turns& turns);

// Measures turns. Equals the lower bound of the schedule that they make.
void measure(const Timeline& timeline, const Turns& turns, Usage& usage);

// The effort of planning: turns that a search makes and measures. Counted, not timed, so that a
// plan comes out the same every time.
inline constexpr std::size_t kPlanningTurns = 12'000'000;

// The search for what to compute again. The same questions in the same order have the same answers.
class Recomputation : NoCopy {
 public:
  explicit Recomputation(const Timeline& timeline);  // which outlives it
  ~Recomputation();

  // Turns with the fewest bytes alive that the search can reach.
  const Turns& least();
  // Turns that keep at most `bytes` alive, with as little work as the effort finds. Empty if it
  // finds none; once least() was called, that is for fewer bytes than those alone.
  Turns fit(std::size_t bytes, std::size_t effort = kPlanningTurns);

 private:
  class Search;
  std::unique_ptr<Search> search_;
};

// As fit(), with nearly always the least work there is; moves count in full. Nothing for many
// values or steps, or where that takes too long.
std::optional<Turns> fit_best_first(const Timeline& timeline, std::size_t bytes);

// Rewrites draft and schedule to run these turns: repeated steps and moves are added to the draft,
// and their readers read what they write.
void repeat_steps(Draft& draft, Schedule& schedule, const Timeline& timeline, const Turns& turns);

}  // namespace ebb::detail
