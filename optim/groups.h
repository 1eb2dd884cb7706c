#pragma once
#include <vector>

#include "ebb/optim/optimizer.h"

namespace ebb::optim {

// A part of the parameters with an optimizer of its own: another rule, other options.
struct ParameterGroup {
  Parameters parameters;
  Optimizer optimizer;
};

// Optimizer::minimize with several optimizers and one backward pass:
//
//   optim::minimize(loss, {{params.scope("encoder"), optim::Sgd({.learning_rate = 1e-3})},
//                          {params.scope("head"), optim::AdamW()}});
//
// makes the steps that one backward() and a step() of each would make. Slots are those of each
// optimizer on its part; what is in no group is a constant; each clips its own part. Everything is
// allocated before the first byte is written. A group that is frozen, or as far as the loss depends
// on it, is passed over. Throws Error for no group, where all are frozen, where the loss depends on
// nothing in one of them, or for a parameter in two of them; and as Optimizer::minimize.
Tensor minimize(const Tensor& loss, const std::vector<ParameterGroup>& groups,
                CallSite site = CallSite::here());

}  // namespace ebb::optim
