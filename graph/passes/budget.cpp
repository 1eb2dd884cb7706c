#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "ebb/core/ops/collective.h"
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
  lay_out(fitted.draft, fitted.schedule, true);
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

std::int64_t nanoseconds_of(const Draft& draft) {
  std::int64_t sum = 0;
  for (const DraftStep& step : draft.steps)
    sum += estimated_nanoseconds(work_of(draft, step), draft.runtime->profile());
  return sum;
}

// A draft in micro-batches.
struct Cut {
  std::int64_t count = 1;
  Draft draft;
  Schedule schedule;
  std::int64_t nanoseconds = 0;

  Cut(const Draft& whole, const Rows& rows, std::int64_t micro_batches)
      : count(micro_batches), draft(cut(whole, rows, micro_batches)) {
    Passes passes;
    passes.merge = passes.fold = false;
    make_steps(draft, passes);
    schedule = best_schedule(draft, passes);
    nanoseconds = nanoseconds_of(draft);
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

}  // namespace

bool make_steps(Draft& draft, const Passes& passes) {
  if (passes.identities) simplify(draft);
  if (passes.fold) fold(draft);
  const bool merged = passes.merge && merge(draft);
  resolve(draft);
  add_dependencies(draft);
  return merged;
}

Schedule best_schedule(const Draft& draft, const Passes& passes) {
  const auto scheduled = [&](Schedule schedule) {
    lay_out(draft, schedule, passes.share);
    return schedule;
  };
  Schedule as_written = scheduled(order(draft, false));
  if (!passes.share) return as_written;
  Schedule early = order(draft, true);
  if (early.order == as_written.order) return as_written;
  early = scheduled(std::move(early));
  return early.layout.total_bytes < as_written.layout.total_bytes ? early : as_written;
}

namespace {

// Larger drafts have no time for another search.
constexpr std::size_t kMostTwice = 4'000;  // steps

// Makes the draft and its schedule fit an arena: changes the order, or repeats steps and moves
// values in that order or another. Returns the estimated nanoseconds of a run. If the schedule
// takes more bytes, none fits, and these are the least that do.
std::int64_t fit_arena(Draft& draft, Schedule& schedule, std::size_t arena_bytes) {
  const std::int64_t nanoseconds = nanoseconds_of(draft);
  std::vector<Schedule> orders{order(draft, false, true), order(draft, true, true)};
  if (orders[1].order == orders[0].order) orders.pop_back();
  Fitted best{draft, schedule};
  if (const std::optional<Schedule> reordered = reorder(draft, schedule)) {
    Schedule placed = *reordered;
    lay_out(draft, placed, true);
    if (placed.layout.total_bytes <= arena_bytes) {
      schedule = std::move(placed);
      return nanoseconds;
    }
    // A placement may take more than the bytes alive at once.
    if (placed.layout.total_bytes < best.schedule.layout.total_bytes)
      best.schedule = std::move(placed);
    if (orders.size() == 2 && draft.steps.size() > kMostTwice) orders.erase(orders.begin());
    orders.insert(orders.begin(), *reordered);
  }
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
  for (Way& way : ways) {
    if (moves && way.timeline.restores == 0) continue;
    Fitted least = repeated(draft, way.order, way.timeline, way.recomputation.least());
    if (least.schedule.layout.total_bytes < best.schedule.layout.total_bytes)
      best = std::move(least);
  }
  if (best.schedule.layout.total_bytes <= arena_bytes)
    for (Way& way : ways) {
      std::optional<Fitted> fitted =
          fit_order(draft, way.order, way.timeline, way.recomputation, arena_bytes);
      if (fitted && fitted->nanoseconds < best.nanoseconds) best = std::move(*fitted);
    }
  overlap_moves(best.draft, best.schedule, std::max(arena_bytes, best.schedule.layout.total_bytes));
  draft = std::move(best.draft);
  schedule = std::move(best.schedule);
  return nanoseconds + best.nanoseconds;
}

// Puts micro-batches in place of a draft and schedule that fit_arena has made, where only these fit
// the arena, or are estimated to take less time than `nanoseconds`, which then become theirs.
// Returns their number, 1 if the draft stays. If none fit, it is the draft with the fewest bytes.
std::int64_t fit_micro_batches(const Draft& whole, const Rows& rows, Draft& draft,
                               Schedule& schedule, std::int64_t& nanoseconds,
                               std::size_t arena_bytes) {
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
    if (cut->bytes() > arena_bytes || cut->nanoseconds >= nanoseconds) return 1;
  } else if (cut->bytes() > arena_bytes) {
    // Neither fits alone: steps run again within as many micro-batches as can be planned so.
    if (const std::int64_t count = most_within(kMostRepeated); count > 1) {
      Cut repeated(whole, rows, count);
      repeated.nanoseconds = fit_arena(repeated.draft, repeated.schedule, arena_bytes);
      if (repeated.bytes() < cut->bytes()) cut = std::move(repeated);
    }
    if (cut->bytes() >= schedule.layout.total_bytes) return 1;
  }
  draft = std::move(cut->draft);
  schedule = std::move(cut->schedule);
  nanoseconds = cut->nanoseconds;
  return cut->count;
}

}  // namespace

std::int64_t fit_budget(const Draft& whole, const Rows& rows, Draft& draft, Schedule& schedule,
                        std::size_t budget,
                        const std::function<std::size_t(const Draft&)>& held_by) {
  const memory::Profile& profile = draft.runtime->profile();
  struct Way {
    Draft draft;
    Schedule schedule;
    std::int64_t nanoseconds = 0, micro_batches = 1;
    std::size_t bytes = 0;
  };
  const std::int64_t unfitted = nanoseconds_of(draft);
  // Each micro-batch would gather shares again, and ranks may differ in their numbers.
  const bool gathers = std::ranges::any_of(
      whole.nodes, [](const DraftNode& item) { return item.node->op == &whole_op; });
  const auto fit = [&](bool slots_on_host) {
    Way way{draft, schedule, unfitted};
    way.draft.slots_on_host = slots_on_host;
    const std::size_t held = held_by(way.draft);
    const std::size_t arena = budget > held ? profile.whole_pages(budget - held) : 0;
    if (schedule.layout.total_bytes > arena) {
      way.nanoseconds = fit_arena(way.draft, way.schedule, arena);
      if (rows.can_cut() && !gathers &&
          (way.nanoseconds > unfitted || way.schedule.layout.total_bytes > arena))
        way.micro_batches =
            fit_micro_batches(whole, rows, way.draft, way.schedule, way.nanoseconds, arena);
      way.draft.slots_on_host = slots_on_host;
    }
    way.bytes = held + profile.in_pages(way.schedule.layout.total_bytes);
    return way;
  };
  const bool is_on_host = std::exchange(draft.slots_on_host, true);
  const std::size_t least_held = held_by(draft);
  draft.slots_on_host = is_on_host;
  const std::size_t held = held_by(draft);
  const bool may_move = held > least_held && profile.link_bytes_per_us > 0;
  Way best = fit(is_on_host || (may_move && held >= budget));
  if (may_move && !best.draft.slots_on_host) {
    const auto across =
        static_cast<std::int64_t>(1000 * static_cast<double>(slot_traffic_bytes(draft)) /
                                  static_cast<double>(profile.link_bytes_per_us));
    // If slots free all that is too much, no second search is needed; for a quarter of it, one is
    // worth its time.
    const std::size_t before = held + profile.in_pages(schedule.layout.total_bytes),
                      over = before - budget, saved = held - least_held;
    const bool is_worth_it =
        saved >= over || (saved >= over / 4 && draft.steps.size() <= kMostTwice);
    if (best.bytes > budget || (is_worth_it && best.nanoseconds > unfitted + across)) {
      Way other = fit(true);
      other.nanoseconds += across;
      if (best.bytes > budget ? other.bytes < best.bytes
                              : other.bytes <= budget && other.nanoseconds < best.nanoseconds)
        best = std::move(other);
    }
  }
  draft = std::move(best.draft);
  schedule = std::move(best.schedule);
  return best.micro_batches;
}

}  // namespace ebb::detail
