#pragma once
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

// Activations element by element, and what they are made of (tanh is in core/ops/elementary.h,
// where the words on accuracy are), of x's shape and dtype, a floating one. Throw ShapeError for
// others.
#include "ebb/core/ops/declare_pointwise.inc"
// The list:
#include "ebb/core/kernels/functors/activations.inc"
#include "ebb/core/ops/undefine_pointwise.inc"

// x above 0, slope x below, of which the gradient at 0 is the slope; exact. A slope below 0 is
// refused with an Error: gradients are made from the result.
Tensor leaky_relu(const Operand& x, double slope = 0.01);

// x above 0, alpha (exp(x) - 1) below: within 2 ulp (1.8 measured). An alpha below 0 is refused
// with an Error, as a slope is.
Tensor elu(const Operand& x, double alpha = 1);

// x times the probability of less than x in the normal distribution, 0.5 x (1 + erf(x / sqrt(2))):
// within 6 ulp (4.5 measured), that of a large negative x too. `approximate`: with tanh, 0.5 x (1 +
// tanh(sqrt(2 / pi) (x + 0.044715 x^3))), after Hendrycks and Gimpel, "Gaussian error linear
// units", 2016 (PyTorch's approximate="tanh"), within 2 ulp of the larger one of 1 and the result.
struct GeluOptions {
  bool approximate = false;
};
Tensor gelu(const Operand& x, GeluOptions options = {});

}  // namespace ebb
