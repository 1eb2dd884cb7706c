#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// Updates write into their first input(s) in place; output 0 is that input's buffer again (kernels
// ignore outputs unless stated). "gated": two further inputs at the end, `ready` (boolean scalar)
// and `count` (i64 scalar). A gated update does nothing unless ready, and divides the gradient by
// count.
struct SgdAttributes {
  double momentum = 0;      // > 0: input 1 is the velocity
  double weight_decay = 0;  // added to the gradient
  std::int32_t nesterov = 0;
  std::int32_t gated = 0;
};

struct AdamAttributes {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  std::int32_t decoupled = 0;  // 1: AdamW, p -= lr wd p; 0: wd p is added to the gradient
  std::int32_t gated = 0;
};

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

struct CountAttributes {
  std::int64_t value = 0;
  std::int32_t gated = 0;
  std::int32_t reserved = 0;
};

namespace cpu {
// Inputs p*, (velocity*)?, g, rate (f64 scalar), (ready, count)?.  PyTorch's SGD:
//   g += wd p; v = momentum v + g (v = g at first, v starts at 0); p -= rate (nesterov ? g +
//   momentum v : v)
Status sgd_update(const KernelContext&);
// Inputs p*, m*, v*, g, step (i64 scalar, already counting this step), rate (f64 scalar), (ready,
// count)?. Adam of Kingma & Ba with bias correction as PyTorch computes it (denominator
// sqrt(v)/sqrt(1-beta2^t) + eps), arithmetic in p's dtype except the scalars, which are in double.
// One pass over all four arrays.
Status adam_update(const KernelContext&);
// Input step (i64 scalar); output 0 (f64 scalar, its own memory) = the rate of step + 1.
Status schedule(const KernelContext&);
// Inputs n* (i64 scalar), (ready)?: n += CountAttributes::value (only if ready, when gated).
Status increment(const KernelContext&);
// Inputs n* (i64 scalar), rows (i64 scalar): n += rows.
Status add_count(const KernelContext&);
// Input n (i64 scalar); output 0 (boolean scalar, its own memory) = n >= CountAttributes::value.
Status at_least(const KernelContext&);
// Inputs acc*, g, rows (i64 scalar): acc += rows * g.
Status accumulate(const KernelContext&);
// Inputs a*, ready (boolean scalar): a = 0 if ready; f32, f64, i64.
Status clear_if(const KernelContext&);
// Inputs a*, b of the same shape: a += b; f32, f64.
Status add_assign(const KernelContext&);
// Inputs a*, b of the same shape and dtype: a = b.
Status assign(const KernelContext&);
// Inputs a*, b of the same shape and dtype, ready (boolean scalar): a = b if ready.
Status assign_if(const KernelContext&);
}  // namespace cpu
}  // namespace ebb
