#pragma once
#include "ebb/core/ops/arguments.h"

namespace ebb {

// Activations element by element, of x's shape and floating dtype. tanh and the words on accuracy
// are in core/ops/elementary.h. Throw ShapeError for other dtypes.
#define EBB_FAMILY "ebb/core/kernels/functors/activations.inc"
#include "ebb/core/ops/declare_pointwise.inc"

// x above 0, slope x below; exact. The gradient at 0 is the slope. Throws Error for a slope below
// 0: the gradient is computed from the result, which has to keep x's sign.
Tensor leaky_relu(const Operand& x, double slope = 0.01);

// x above 0, alpha (exp(x) - 1) below. Within 2 ulp (1.8 measured). Throws Error for an alpha below
// 0, for the reason leaky_relu has.
Tensor elu(const Operand& x, double alpha = 1);

// 0.5 x (1 + erf(x / sqrt(2))). Within 6 ulp (4.9 measured), for a large negative x too.
// `approximate` takes 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), PyTorch's "tanh", within 2
// ulp of the larger of 1 and the result. Hendrycks and Gimpel, "Gaussian error linear units", 2016.
struct GeluOptions {
  bool approximate = false;
};
Tensor gelu(const Operand& x, GeluOptions options = {});

}  // namespace ebb
