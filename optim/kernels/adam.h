#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb::optim {

struct AdamAttributes {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  std::int32_t decoupled = 0;  // 1: AdamW, p -= rate wd p; 0: wd p is added to the gradient
  std::int32_t gated = 0;      // 1: ready and count at the end (optim/detail/update_operator.h)
};

}  // namespace ebb::optim

namespace ebb::cpu {
// Inputs p*, m*, v*, g, step (i64 scalar, already counting this step), rate (f64 scalar), (ready,
// count)?; what has a star is written, and there are no outputs. Adam of Kingma & Ba with bias
// correction as PyTorch computes it (denominator sqrt(v) / sqrt(1 - beta2^t) + epsilon): arithmetic
// in the widest dtype of the four arrays, and in double what is the same for all elements. Each is
// f32 or f64, m and v alike; where p is f16 or bf16, m and v are f32, g is f32 or of p's dtype, and
// the arithmetic is in float: p alone is rounded, once, to nearest even. One pass over all four.
Status adam_update(const KernelContext&);
}  // namespace ebb::cpu

// The same, on a GPU, for one array and for many.
namespace ebb::cuda {
KernelFunction adam_update;
Status adam_update_merged(std::span<const Launch>);
}  // namespace ebb::cuda
