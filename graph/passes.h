#pragma once

namespace ebb {

// The passes that improve a plan. Each can be left out, for comparison: what a run computes stays
// the same. `passes = false` leaves out all of them, so that every node runs as written and each
// result has memory of its own.
struct Passes {
  constexpr Passes(bool all = true) noexcept  // NOLINT: implicit
      : identities(all), fold(all), merge(all), fuse(all), share(all) {}

  bool identities;  // drop nodes that change nothing
  bool fold;        // CPU: compute values of one number when the plan is made
  bool merge;       // compute once what several nodes compute
  bool fuse;   // compute chains of pointwise operators on 4,096 elements or more as one, without
               // memory for values on the way
  bool share;  // let outputs take over inputs, choose the order of updates, keep to a budget
};

}  // namespace ebb
