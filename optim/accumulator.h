#pragma once
#include <cstdint>
#include <optional>

#include "ebb/optim/optimizer.h"

namespace ebb::optim {

struct AccumulatorOptions {
  std::int64_t samples = 1;             // samples that one update stands for
  std::optional<DType> sum_dtype = {};  // of the sums; else as state_dtype_of() says
};

// Accumulates the gradients of micro-batches and updates once per `samples` samples. The update
// equals the whole batch's up to float rounding, for losses that are means over samples and without
// dropout. Works with any rule. Sums and count are slots in Parameters
// ("hidden.weight/adam.accumulated", "adam/samples") and belong to scope, rule and name, as the
// optimizer's own slots do. The device decides whether an update is due, so each micro-step is the
// same program.
//
//   optim::Accumulator accumulate(optim::Adam(), {.samples = 512});
//   Tensor micro_step = accumulate.minimize(loss, params, rows(y));
class Accumulator {
 public:
  // With any optimizer. Throws Error for an option out of range.
  explicit Accumulator(const Optimizer& optimizer, const AccumulatorOptions& options = {},
                       CallSite site = CallSite::here());

  // Adds `samples` times the gradient of `loss` to the sums. `samples` (i64[], rows() of a batch)
  // is the number of samples that the loss is the mean of. Once the count reaches the option's,
  // updates with sums / count every parameter that this accumulator has a sum for, and starts sums
  // and count again at zero. Any micro-step may complete the group, so in a graph all micro-steps
  // must depend on the same parameters. The sum of a parameter that is frozen at that moment is
  // dropped with its group. Otherwise like Optimizer::minimize, whose result this returns.
  Tensor minimize(const Tensor& loss, const Parameters& parameters, const Tensor& samples,
                  CallSite site = CallSite::here()) const;

  // Updates the parameters with the sums of an incomplete group, if there is one. Returns its
  // number of samples, i64[]: in eager the update has happened; in a graph, a run that fetches the
  // result makes it. Throws Error where nothing has ever been accumulated, or only for parameters
  // that are frozen; OutOfMemory.
  Tensor flush(const Parameters& parameters, CallSite site = CallSite::here()) const;

 private:
  Optimizer optimizer_;
  AccumulatorOptions options_;
};

}  // namespace ebb::optim
