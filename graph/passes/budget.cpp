#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "ebb/graph/passes/offload.h"
#include "ebb/graph/passes/passes.h"
#include "ebb/graph/passes/rows.h"
#include "ebb/graph/passes/timeline.h"

namespace ebb::detail {

namespace {

struct Fitted {
  Draft draft;
  Schedule schedule;
  std::int64_t nanoseconds = 0;  // of the repeated steps and the moves
};

Fitted repeated(const Draft& draft, const Schedule& before, const Timeline& timeline,
                const Turns& turns) {
  Fitted fitted{draft, before};
  repeat_steps(fitted.draft, fitted.schedule, timeline, turns);
  find_lifetimes(fitted.draft, fitted.schedule, true);
  assign_offsets(fitted.schedule);
  fitted.nanoseconds = extra_nanoseconds(timeline, turns);
  return fitted;
}

// A placement may take more than the bytes alive at once: then these must be fewer by as much.
std::optional<Fitted> fit_order(const Draft& draft, const Schedule& order, const Timeline& timeline,
                                Recomputation& recomputation, std::size_t arena_bytes) {
  constexpr int kTries = 6;
  std::size_t alive_bytes = arena_bytes;
  for (int i = 0; i < kTries; ++i) {
    // Twice as many ways are tried where values can move.
    const Turns turns =
        recomputation.fit(alive_bytes, kPlanningTurns >> (i + (timeline.restores > 0 ? 3 : 2)));
    if (turns.empty()) break;
    Fitted fitted = repeated(draft, order, timeline, turns);
    const memory::Placement& layout = fitted.schedule.layout;
    if (layout.total_bytes <= arena_bytes) return fitted;
    const std::size_t over = layout.total_bytes - arena_bytes;
    if (layout.lower_bound_bytes > alive_bytes || over > layout.lower_bound_bytes) break;
    alive_bytes = std::min(alive_bytes, layout.lower_bound_bytes) - over;
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

// The fewest micro-batches, at most `most`, that fit as they are; if none do, those with the fewest
// bytes.
std::optional<Cut> fewest_that_fit(const Draft& whole, const Rows& rows, std::int64_t most,
                                   std::size_t arena_bytes) {
  std::optional<Cut> best;
  for (std::int64_t count = 1; count < most && (!best || best->bytes() > arena_bytes);) {
    const std::int64_t refused = std::exchange(count, std::min(2 * count, most));
    Cut cut(whole, rows, count);
    if (!best || cut.bytes() < best->bytes()) best = std::move(cut);
    if (best->bytes() > arena_bytes) continue;
    for (std::int64_t fewer = refused; best->count - fewer > 1;) {
      Cut middle(whole, rows, fewer + (best->count - fewer) / 2);
      if (middle.bytes() <= arena_bytes)
        best = std::move(middle);
      else
        fewer = middle.count;
    }
  }
  return best;
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
  std::vector<Schedule> orders{order(draft, false, true), order(draft, true, true)};
  if (orders[1].order == orders[0].order) orders.pop_back();
  struct Way {
    Way(const Schedule& order, Timeline timeline)
        : order(order), timeline(std::move(timeline)), recomputation(this->timeline) {}
    const Schedule& order;
    const Timeline timeline;
    Recomputation recomputation;
  };
  std::deque<Way> ways;
  const memory::Profile& profile = draft.runtime->profile();
  for (const Schedule& each : orders) {
    Timeline timeline = make_timeline(draft, each);
    ways.emplace_back(each, timeline);
    if (profile.link_bytes_per_us == 0) continue;
    add_restores(timeline, profile);
    if (timeline.restores > 0) ways.emplace_back(each, std::move(timeline));
  }
  // The least comes first, of ways with moves where there are any: whether a budget is refused must
  // not depend on the luck of a search.
  const bool moves =
      std::ranges::any_of(ways, [](const Way& way) { return way.timeline.restores > 0; });
  std::optional<Fitted> best;
  for (Way& way : ways) {
    if (moves && way.timeline.restores == 0) continue;
    Fitted least = repeated(draft, way.order, way.timeline, way.recomputation.least());
    if (!best || least.schedule.layout.total_bytes < best->schedule.layout.total_bytes)
      best = std::move(least);
  }
  if (best->schedule.layout.total_bytes <= arena_bytes)
    for (Way& way : ways) {
      std::optional<Fitted> fitted =
          fit_order(draft, way.order, way.timeline, way.recomputation, arena_bytes);
      if (fitted && fitted->nanoseconds < best->nanoseconds) best = std::move(fitted);
    }
  overlap_moves(best->draft, best->schedule,
                std::max(arena_bytes, best->schedule.layout.total_bytes));
  draft = std::move(best->draft);
  schedule = std::move(best->schedule);
  return schedule.layout.total_bytes;
}

std::int64_t fit_micro_batches(const Draft& whole, const Rows& rows, Draft& draft,
                               Schedule& schedule, std::size_t arena_bytes) {
  // More steps would take too long to plan, with and without steps that run again.
  constexpr std::size_t kMostSteps = 40'000, kMostRepeated = 10'000;
  std::size_t cut_nodes = 1;
  for (const Rows::Item& item : rows.items) cut_nodes += item.is_cut;
  const auto most_within = [&](std::size_t steps) {
    return std::min(rows.count, static_cast<std::int64_t>(steps / cut_nodes));
  };
  std::optional<Cut> cut = fewest_that_fit(whole, rows, most_within(kMostSteps), arena_bytes);
  if (!cut) return 1;
  if (schedule.layout.total_bytes <= arena_bytes) {
    if (cut->bytes() > arena_bytes || nanoseconds_of(cut->draft) >= nanoseconds_of(draft)) return 1;
  } else if (cut->bytes() > arena_bytes) {
    // Neither fits alone: steps run again within as many micro-batches as can be planned so.
    if (const std::int64_t count = most_within(kMostRepeated); count > 1) {
      Cut repeated(whole, rows, count);
      fit_arena(repeated.draft, repeated.schedule, arena_bytes);
      if (repeated.bytes() < cut->bytes()) cut = std::move(repeated);
    }
    if (cut->bytes() >= schedule.layout.total_bytes) return 1;
  }
  draft = std::move(cut->draft);
  schedule = std::move(cut->schedule);
  return cut->count;
}

}  // namespace ebb::detail
