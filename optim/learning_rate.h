#pragma once
#include <cstdint>

#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/tensor.h"
#include "ebb/optim/kernels/learning_rate.h"

namespace ebb::optim {

// The learning rate of an optimizer: a number, a schedule (cosine), or a tensor that the user
// assigns between steps. Schedules are computed on the device from the step count, so neither mode
// rebuilds anything when the rate changes.
class LearningRate {
 public:
  // The same in every step. Throws Error unless finite and >= 0.
  LearningRate(double rate);  // NOLINT: implicit, `.learning_rate = 1e-3`
  // The value `rate` has when a step is made: f64[], on the device of the parameters, or of their
  // graph; not copied. Throws Error for another shape or dtype.
  LearningRate(Tensor rate);  // NOLINT

  // The rate of the step after `step` (i64[], steps made so far) as an f64[].
  Tensor after(const Tensor& step, CallSite site = CallSite::here()) const;

 private:
  friend LearningRate cosine(double peak, const struct CosineOptions& options);
  explicit LearningRate(const ScheduleAttributes& schedule) noexcept : schedule_(schedule) {}

  ScheduleAttributes schedule_;
  Tensor tensor_;  // not defined: the schedule counts
};

struct CosineOptions {
  std::int64_t warm_up = 0;    // steps
  std::int64_t steps = 1'000;  // all of them, those of the warm-up included
  double end = 0;              // the rate after the last step
};

// Linear warm-up, then half a cosine (Loshchilov & Hutter, ICLR 2017). In step n, from 1:
//   peak n / warm_up                                                       while n <= warm_up
//   end + (peak - end) (1 + cos(pi (n - warm_up) / (steps - warm_up))) / 2 while n <= steps
//   end                                                                    afterwards
// Throws Error unless 0 <= warm_up < steps and both rates are finite and >= 0.
LearningRate cosine(double peak, const CosineOptions& options = {});

// The rate of a schedule, from the count of steps. Updates nothing.
extern const OpDef schedule_op;

}  // namespace ebb::optim
