#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "ebb/graph/passes/passes.h"
#include "ebb/graph/passes/rows.h"
#include "ebb/graph/passes/timeline.h"

namespace ebb::detail {

namespace {

struct Fitted {
  Draft draft;
  Schedule schedule;
  std::int64_t nanoseconds = 0;  // of the repeated steps
};

Fitted repeated(const Draft& draft, const Schedule& before, const Timeline& timeline,
                const Turns& turns) {
  Fitted fitted{draft, before};
  repeat_steps(fitted.draft, fitted.schedule, turns);
  find_lifetimes(fitted.draft, fitted.schedule, true);
  assign_offsets(fitted.schedule);
  for (const Turn& turn : turns)
    if (turn.is_repeated()) fitted.nanoseconds += timeline.steps[turn.step].nanoseconds;
  return fitted;
}

// A placement may take more than the bytes alive at once: then these must be fewer by as much.
std::optional<Fitted> fit_order(const Draft& draft, const Schedule& order, const Timeline& timeline,
                                Recomputation& recomputation, std::size_t arena_bytes) {
  constexpr int kTries = 6;
  std::size_t alive_bytes = arena_bytes;
  for (int i = 0; i < kTries; ++i) {
    const Turns turns = recomputation.fit(alive_bytes, kPlanningTurns >> (i + 2));
    if (turns.empty()) break;
    Fitted fitted = repeated(draft, order, timeline, turns);
    const memory::Placement& layout = fitted.schedule.layout;
    if (layout.total_bytes <= arena_bytes) return fitted;
    const std::size_t over = layout.total_bytes - arena_bytes;
    if (layout.lower_bound_bytes > alive_bytes || over > alive_bytes) break;
    alive_bytes -= over;
  }
  return std::nullopt;
}

// A draft in micro-batches.
struct Cut {
  std::int64_t count = 1;
  Draft draft;
  Schedule schedule;

  Cut(const Draft& whole, const Rows& rows, std::int64_t micro_batches)
      : count(micro_batches), draft(cut(whole, rows, micro_batches)) {
    make_steps(draft, true);
    schedule = best_schedule(draft, true);
  }
  std::size_t bytes() const noexcept { return schedule.layout.total_bytes; }
};

// Numbers of micro-batches to try: doubled up to the most.
std::vector<std::int64_t> counts_up_to(std::int64_t most) {
  std::vector<std::int64_t> counts;
  for (std::int64_t count = 2; count < most; count *= 2) counts.push_back(count);
  if (most > 1) counts.push_back(most);
  return counts;
}

// The fewest micro-batches that fit as they are.
std::optional<Cut> fewest_that_fit(const Draft& whole, const Rows& rows,
                                   const std::vector<std::int64_t>& counts,
                                   std::size_t arena_bytes) {
  std::int64_t refused = 1;
  for (const std::int64_t count : counts) {
    Cut fitting(whole, rows, count);
    if (fitting.bytes() > arena_bytes) {
      refused = count;
      continue;
    }
    while (fitting.count - refused > 1) {
      Cut middle(whole, rows, refused + (fitting.count - refused) / 2);
      if (middle.bytes() <= arena_bytes)
        fitting = std::move(middle);
      else
        refused = middle.count;
    }
    return fitting;
  }
  return std::nullopt;
}

std::int64_t nanoseconds_of(const Draft& draft) {
  std::int64_t sum = 0;
  for (const DraftStep& step : draft.steps)
    sum += estimated_nanoseconds(work_of(draft, step), draft.runtime->profile());
  return sum;
}

}  // namespace

void make_steps(Draft& draft, bool simplifies) {
  if (simplifies) simplify(draft);
  resolve(draft);
  add_dependencies(draft);
}

// Schedules twice: as written, and with each update as early as possible. Keeps the schedule with
// fewer bytes.
Schedule best_schedule(const Draft& draft, bool passes) {
  const auto scheduled = [&](Schedule schedule) {
    find_lifetimes(draft, schedule, passes);
    assign_offsets(schedule);
    return schedule;
  };
  Schedule as_written = scheduled(order(draft, false));
  if (!passes) return as_written;
  Schedule early = order(draft, true);
  if (early.order == as_written.order) return as_written;
  early = scheduled(std::move(early));
  return early.layout.total_bytes < as_written.layout.total_bytes ? early : as_written;
}

std::size_t fit_arena(Draft& draft, Schedule& schedule, std::size_t arena_bytes) {
  std::vector<Schedule> orders{order(draft, false), order(draft, true)};
  if (orders[1].order == orders[0].order) orders.pop_back();
  std::deque<Timeline> timelines;
  std::deque<Recomputation> recomputations;
  // The least comes first: whether a budget is refused must not depend on the luck of a search.
  std::optional<Fitted> best;
  for (const Schedule& each : orders) {
    timelines.push_back(make_timeline(draft, each));
    recomputations.emplace_back(timelines.back());
    Fitted least = repeated(draft, each, timelines.back(), recomputations.back().least());
    if (!best || least.schedule.layout.total_bytes < best->schedule.layout.total_bytes)
      best = std::move(least);
  }
  for (std::size_t i = 0; i < orders.size() && best->schedule.layout.total_bytes <= arena_bytes;
       ++i) {
    std::optional<Fitted> fitted =
        fit_order(draft, orders[i], timelines[i], recomputations[i], arena_bytes);
    if (fitted && fitted->nanoseconds < best->nanoseconds) best = std::move(fitted);
  }
  draft = std::move(best->draft);
  schedule = std::move(best->schedule);
  return schedule.layout.total_bytes;
}

std::int64_t fit_micro_batches(const Draft& whole, const Rows& rows, Draft& draft,
                               Schedule& schedule, std::size_t arena_bytes) {
  // More steps would take too long to plan, with and without steps that run again.
  constexpr std::size_t kMostSteps = 60'000, kMostRepeated = 20'000;
  std::size_t cut_nodes = 1;
  for (const Rows::Item& item : rows.items) cut_nodes += item.is_cut;
  const auto counts_within = [&](std::size_t steps) {
    return counts_up_to(std::min(rows.count, static_cast<std::int64_t>(steps / cut_nodes)));
  };
  std::int64_t count = 1;
  const auto take = [&](Cut&& cut) {
    draft = std::move(cut.draft);
    schedule = std::move(cut.schedule);
    count = cut.count;
  };
  const bool fits_whole = schedule.layout.total_bytes <= arena_bytes;
  if (std::optional<Cut> cut =
          fewest_that_fit(whole, rows, counts_within(kMostSteps), arena_bytes)) {
    if (!fits_whole || nanoseconds_of(cut->draft) < nanoseconds_of(draft)) take(std::move(*cut));
    return count;
  }
  // Steps run again within the micro-batches where nothing else fits.
  for (const std::int64_t tried :
       fits_whole ? std::vector<std::int64_t>() : counts_within(kMostRepeated)) {
    Cut cut(whole, rows, tried);
    fit_arena(cut.draft, cut.schedule, arena_bytes);
    if (cut.bytes() < schedule.layout.total_bytes) take(std::move(cut));
    if (schedule.layout.total_bytes <= arena_bytes) break;
  }
  return count;
}

}  // namespace ebb::detail
