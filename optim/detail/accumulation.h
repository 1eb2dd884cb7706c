// What adds gradients up and updates with the sums, for an accumulator of one optimizer or of
// several.
#pragma once
#include "ebb/optim/accumulator.h"
#include "ebb/optim/groups.h"

namespace ebb::optim {

// All of this works inside the CallScope of the call that it is made for.

// Throws Error for an option out of range.
void require_options(const AccumulatorOptions& options);

// The parameters that are accumulated for, and what messages call one of them.
struct AccumulatedGroups {
  std::vector<ParameterGroup> groups;
  const char* parameter;
};
// Accumulator::minimize and Accumulator::flush.
Tensor accumulate(const Tensor& loss, const AccumulatedGroups& of,
                  const AccumulatorOptions& options, const Tensor& samples);
Tensor flush_accumulated(const AccumulatedGroups& of, const AccumulatorOptions& options);

}  // namespace ebb::optim
