#pragma once
#include <cstdint>
#include <optional>

#include "ebb/core/tensor/op_def.h"
#include "ebb/optim/optimizer.h"

namespace ebb::optim {

struct AccumulatorOptions {
  std::int64_t samples = 1;             // of the batch that one update stands for
  std::optional<DType> sum_dtype = {};  // of the sums, as state_dtype is; else state_dtype_of()
};

// Accumulates the gradients of micro-batches and updates once per `samples` samples, as the whole
// batch would have: to float rounding, for losses that are means over samples, dropout excepted.
// With any rule. Sums and count are slots in Parameters ("hidden.weight/adam.accumulated",
// "adam/samples") that belong to scope, rule and name as the optimizer's own do, and whether an
// update is due is decided on the device: each micro-step is the same program.
//
//   optim::Accumulator accumulate(optim::Adam(), {.samples = 512});
//   Tensor micro_step = accumulate.minimize(loss, params, rows(y));
class Accumulator {
 public:
  // With any optimizer. Throws Error for an option out of range.
  explicit Accumulator(const Optimizer& optimizer, const AccumulatorOptions& options = {},
                       CallSite site = CallSite::here());

  // Adds `samples` times the gradient of `loss`, the mean over that many samples (i64[], which is
  // rows() of a batch), to the sums. Where the count reaches the option's, the parameters are
  // updated with sums / count, and sums and count start again at zero: all parameters of which this
  // accumulator has a sum, whichever micro-step completes the group (in a graph all of its
  // micro-steps must depend on the same ones). What one that is frozen then has accumulated is
  // dropped with its group. Otherwise like Optimizer::minimize, whose result
  // this returns.
  Tensor minimize(const Tensor& loss, const Parameters& parameters, const Tensor& samples,
                  CallSite site = CallSite::here()) const;

  // Updates the parameters with what has been accumulated of an incomplete group, if anything.
  // Returns the number of its samples, i64[]: eager, it has happened; in a graph, a run that
  // fetches the result makes it happen. Throws Error where nothing has ever been accumulated, or
  // all that has is frozen; OutOfMemory.
  Tensor flush(const Parameters& parameters, CallSite site = CallSite::here()) const;

 private:
  Optimizer optimizer_;
  AccumulatorOptions options_;
};

// What it applies to a sum, a gradient and its number of samples: sum += samples gradient.
extern const OpDef accumulate_op;

}  // namespace ebb::optim
