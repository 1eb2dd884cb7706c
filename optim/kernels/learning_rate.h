#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb::optim {

// The learning rate of step n (1 for the first).
//   constant: base
//   cosine: base n / warm_up while n <= warm_up, then
//           end + (base - end) (1 + cos(pi (n - warm_up) / (steps - warm_up))) / 2, end after steps
struct ScheduleAttributes {
  enum Kind : std::int64_t { constant, cosine };
  Kind kind = constant;
  double base = 1e-3, end = 0;
  std::int64_t warm_up = 0, steps = 0;
};

}  // namespace ebb::optim

namespace ebb::cpu {
// Input step (i64 scalar); output 0 (f64 scalar, its own memory) = the rate of step + 1.
Status schedule(const KernelContext&);
}  // namespace ebb::cpu

// The same, on a GPU.
namespace ebb::cuda {
KernelFunction schedule;
}  // namespace ebb::cuda
