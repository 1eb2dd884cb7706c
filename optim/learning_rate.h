#pragma once
#include <cstdint>

#include "ebb/core/tensor/tensor.h"
#include "ebb/optim/kernels/learning_rate.h"

namespace ebb::optim {

// The learning rate of an optimizer: a number, a schedule (the functions below), or a tensor that
// the user assigns between steps. The device computes schedules from the optimizer's count of
// steps: neither mode rebuilds anything when the rate changes, and a checkpoint resumes the
// schedule, since it has the count.
class LearningRate {
 public:
  // A constant rate. Throws Error unless finite and >= 0.
  LearningRate(double rate,  // NOLINT: implicit, `.learning_rate = 1e-3`
               CallSite site = CallSite::here());
  // The value that `rate` has when a step is made: f64[], on the parameters' device or in their
  // graph; not copied. Throws Error for another shape or dtype.
  LearningRate(Tensor rate, CallSite site = CallSite::here());  // NOLINT
  // One of the schedules below, which check their options.
  explicit LearningRate(const ScheduleAttributes& schedule) noexcept : schedule_(schedule) {}

  // The rate of the step after `step` (i64[], steps made so far) as an f64[].
  Tensor after(const Tensor& step, CallSite site = CallSite::here()) const;

 private:
  ScheduleAttributes schedule_;
  Tensor tensor_;  // undefined: the schedule is used
};

struct DecayOptions {
  std::int64_t warm_up = 0;    // steps
  std::int64_t steps = 1'000;  // of the whole schedule, warm-up included
  double end = 0;              // the rate after the last step
};

// Linear warm-up, then half a cosine (Loshchilov & Hutter, ICLR 2017). In step n, from 1:
//   peak n / warm_up                                                       while n <= warm_up
//   end + (peak - end) (1 + cos(pi (n - warm_up) / (steps - warm_up))) / 2 while n <= steps
//   end                                                                    afterwards
// Throws Error unless 0 <= warm_up < steps and both rates are finite and >= 0.
LearningRate cosine(double peak, const DecayOptions& options = {},
                    CallSite site = CallSite::here());

// Linear warm-up as cosine()'s, then down in a line, or as a power of the remaining part:
//   end + (peak - end) (1 - (n - warm_up) / (steps - warm_up))^power         while n <= steps
// Throw Error as cosine() does, and unless the power is finite and above 0.
LearningRate linear_decay(double peak, const DecayOptions& options = {},
                          CallSite site = CallSite::here());
LearningRate polynomial_decay(double peak, double power, const DecayOptions& options = {},
                              CallSite site = CallSite::here());

struct GeometricOptions {
  double factor = 0.1;       // above 0
  std::int64_t every = 100;  // steps
  std::int64_t warm_up = 0;  // steps
};

// Linear warm-up as cosine()'s, then smaller by `factor` every `every` steps: gradually
// (exponential), or at once as torch.optim.lr_scheduler.StepLR. In step n, with k = n -
// max(warm_up, 1), so that the last step of the warm-up, or else the first step, has the rate
// `base`:
//   exponential_decay   base factor^(k / every)
//   step_decay          base factor^floor(k / every)
// Throw Error unless base is finite and >= 0, factor finite and above 0, every >= 1, warm_up >= 0.
LearningRate exponential_decay(double base, const GeometricOptions& options = {},
                               CallSite site = CallSite::here());
LearningRate step_decay(double base, const GeometricOptions& options = {},
                        CallSite site = CallSite::here());

// Linear warm-up to a rate that then stays: rate n / steps while n <= steps. Throws Error unless
// rate is finite and >= 0, and steps >= 0.
LearningRate linear_warm_up(double rate, std::int64_t steps, CallSite site = CallSite::here());

}  // namespace ebb::optim
