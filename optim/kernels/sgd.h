#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb::optim {

struct SgdAttributes {
  double momentum = 0;      // > 0: input 1 is the velocity
  double weight_decay = 0;  // added to the gradient
  std::int32_t nesterov = 0;
  std::int32_t gated = 0;  // 1: ready and count at the end (optim/detail/update_operator.h)
};

}  // namespace ebb::optim

namespace ebb::cpu {
// Inputs p*, (velocity*)?, g, rate (f64 scalar), (ready, count)?; what has a star is written, and
// there are no outputs. PyTorch's SGD, in the widest dtype of the arrays:
//   g += wd p; v = momentum v + g (v = g at first, v starts at 0); p -= rate (nesterov ? g +
//   momentum v : v)
// Each is f32 or f64; where p is f16 or bf16, the velocity is f32, g is f32 or of p's dtype, and
// the arithmetic is in float: p alone is rounded, once, to nearest even.
Status sgd_update(const KernelContext&);
}  // namespace ebb::cpu

// The same, on a GPU, for one array and for many.
namespace ebb::cuda {
KernelFunction sgd_update;
Status sgd_update_merged(std::span<const Launch>);
}  // namespace ebb::cuda
