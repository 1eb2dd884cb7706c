#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "ebb/graph/passes/passes.h"
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

}  // namespace

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

}  // namespace ebb::detail
