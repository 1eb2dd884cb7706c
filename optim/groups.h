#pragma once
#include <vector>

#include "ebb/optim/accumulator.h"
#include "ebb/optim/optimizer.h"

namespace ebb::optim {

// Some of the parameters, with an optimizer of their own: another rule, other options.
struct ParameterGroup {
  Parameters parameters;
  Optimizer optimizer;
};

// Optimizer::minimize with several optimizers and one backward pass:
//
//   optim::minimize(loss, {{params.scope("encoder"), optim::Sgd({.learning_rate = 1e-3})},
//                          {params.scope("head"), optim::AdamW()}});
//
// makes the steps that one backward() and a step() of each would make. Each optimizer keeps its own
// slots and clips its own part; parameters in no group are constants. Everything is allocated
// before the first byte is written. Skips a group whose parameters below the loss are all frozen.
// Throws Error for no group, where all are frozen, where the loss depends on nothing in one of
// them, or for a parameter in two of them; and as Optimizer::minimize.
Tensor minimize(const Tensor& loss, const std::vector<ParameterGroup>& groups,
                CallSite site = CallSite::here());

// Accumulator with several optimizers and one backward pass for each micro-batch:
//
//   const optim::GroupAccumulator accumulate(
//       {{params.scope("encoder"), optim::Sgd({.learning_rate = 1e-3})},
//        {params.scope("head"), optim::AdamW()}},
//       {.samples = 512});
//   Tensor micro_step = accumulate.minimize(loss, rows(y));
//
// Keeps the sums, counts and slots that an Accumulator of each optimizer would keep on its part:
// one set of gradients, and two numbers for each group.
class GroupAccumulator {
 public:
  // Throws Error for no group, and for an option out of range.
  explicit GroupAccumulator(std::vector<ParameterGroup> groups,
                            const AccumulatorOptions& options = {},
                            CallSite site = CallSite::here());

  // Accumulator::minimize, with the groups of minimize() above. A frozen group counts samples with
  // the others; its earlier sums are dropped when their batch is complete.
  Tensor minimize(const Tensor& loss, const Tensor& samples,
                  CallSite site = CallSite::here()) const;
  // Accumulator::flush of all groups. Returns the count of samples of the first group that is
  // trained.
  Tensor flush(CallSite site = CallSite::here()) const;

 private:
  std::vector<ParameterGroup> groups_;
  AccumulatorOptions options_;
};

}  // namespace ebb::optim
