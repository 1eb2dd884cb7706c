#pragma once
#include <numeric>

#include "ebb/allocator/statistics.h"
#include "ebb/core/memory/plan.h"
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

}  // namespace ebb::tests
