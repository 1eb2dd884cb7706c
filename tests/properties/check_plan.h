#pragma once
#include <numeric>

#include "ebb/allocator/statistics.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/plan.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/passes/offload.h"
#include "ebb/graph/passes/passes.h"
#include "ebb/graph/passes/timeline.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {

// Requires that the plan equals, byte for byte, the figures of a session that has run nothing else.
inline void check_plan(const memory::Plan& plan, const memory::Stats& session) {
  REQUIRE(plan.peak_bytes == session.allocated.peak);
  REQUIRE(plan.reserved_bytes == session.reserved.peak);
  REQUIRE(plan.by_category == session.at_peak);
  REQUIRE(plan.lower_bound_bytes <= plan.peak_bytes);
  REQUIRE(plan.peak_bytes <= plan.naive_bytes);
  REQUIRE(std::accumulate(plan.arena_by_category.begin(), plan.arena_by_category.end(),
                          std::size_t{0}) == plan.arena_bytes);
}

// Requires that the bytes that the search for a budget counts are those of the schedule it makes.
inline void check_search(const Graph& graph, const Tensors& fetches, const FedShapes& shapes,
                         const Device& device) {
  Runtime& runtime = device.runtime();
  detail::Draft draft = detail::prune(graph.state(), runtime, fetches);
  detail::infer(draft, shapes);
  detail::make_steps(draft, true);
  detail::Schedule schedule = detail::order(draft, true, true);
  detail::Timeline timeline = detail::make_timeline(draft, schedule);
  if (runtime.profile().link_bytes_per_us > 0) detail::add_restores(timeline, runtime.profile());
  const detail::Turns turns = detail::Recomputation(timeline).least();
  detail::Usage usage;
  detail::measure(timeline, turns, usage);
  // Of a few steps it is the least there is.
  if (const auto fewer = detail::fit_best_first(timeline, usage.peak_bytes - 1))
    REQUIRE(fewer->empty());
  detail::repeat_steps(draft, schedule, timeline, turns);
  detail::lay_out(draft, schedule, true);
  REQUIRE(schedule.layout.lower_bound_bytes == usage.peak_bytes);
}

}  // namespace ebb::tests
