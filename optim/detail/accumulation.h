// Accumulates gradients and updates with the sums, for an accumulator of one optimizer or of
// several.
#pragma once
#include "ebb/optim/accumulator.h"
#include "ebb/optim/groups.h"

namespace ebb::optim {

// All of this expects to run inside the CallScope of the user's call.

// Throws Error for an option out of range.
void require_options(const AccumulatorOptions& options);

// Groups to accumulate for, and what error messages call one of their parameters.
struct AccumulatedGroups {
  std::vector<ParameterGroup> groups;
  const char* parameter;
};
// Accumulator::minimize and Accumulator::flush.
Tensor accumulate(const Tensor& loss, const AccumulatedGroups& of,
                  const AccumulatorOptions& options, const Tensor& samples);
Tensor flush_accumulated(const AccumulatedGroups& of, const AccumulatorOptions& options);

}  // namespace ebb::optim
