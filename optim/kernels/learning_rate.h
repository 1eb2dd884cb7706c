#pragma once
#include <cmath>

#include "ebb/core/base/host_device.h"
#include "ebb/core/kernels/kernel.h"

namespace ebb::optim {

// The learning rate of step n (1 for the first). While n <= warm_up it is base n / warm_up; then,
// with part = (n - warm_up) / (steps - warm_up) and past = n - max(warm_up, 1):
//   constant     base
//   cosine       end + (base - end) (1 + cos(pi part)) / 2, end after steps
//   polynomial   end + (base - end) (1 - part)^shape, end after steps
//   exponential  base shape^(past / steps)
//   staircase    base shape^floor(past / steps)
struct ScheduleAttributes {
  enum Kind : std::int64_t { constant, cosine, polynomial, exponential, staircase };
  Kind kind = constant;
  double base = 1e-3, end = 0, shape = 1;
  std::int64_t warm_up = 0, steps = 0;
};

// cos_pi(x) is cos(pi x).
template <class CosPi>
EBB_HOST_DEVICE inline double rate_of_step(const ScheduleAttributes& s, std::int64_t step,
                                           const CosPi& cos_pi) {
  using Schedule = ScheduleAttributes;
  if (step <= s.warm_up) return s.base * static_cast<double>(step) / static_cast<double>(s.warm_up);
  if (s.kind == Schedule::constant) return s.base;
  const std::int64_t past = step - (s.warm_up > 1 ? s.warm_up : 1);
  if (s.kind == Schedule::staircase)
    return s.base * std::pow(s.shape, static_cast<double>(past / s.steps));
  if (s.kind == Schedule::exponential)
    return s.base * std::pow(s.shape, static_cast<double>(past) / static_cast<double>(s.steps));
  if (step >= s.steps) return s.end;
  const double part =
      static_cast<double>(step - s.warm_up) / static_cast<double>(s.steps - s.warm_up);
  if (s.kind == Schedule::polynomial) return s.end + (s.base - s.end) * std::pow(1 - part, s.shape);
  return s.end + (s.base - s.end) * (1 + cos_pi(part)) / 2;
}

}  // namespace ebb::optim

namespace ebb::cpu {
// Input step (i64 scalar); output 0 (f64 scalar, its own memory) = the rate of step + 1.
Status schedule(const KernelContext&);
}  // namespace ebb::cpu

// On a GPU.
namespace ebb::cuda {
KernelFunction schedule;
}  // namespace ebb::cuda
