// Operators as users write them, outside the library (custom_operator.h).
#pragma once
#include "ebb/core/tensor/operand.h"

namespace ebb::tests {

// Whether the tests' device can run the kernels compiled here: for a GPU if nvcc compiled them,
// else for the emulated one. The CPU always can.
bool has_kernels_here();

Tensor mish(const Operand& x);                // derivatives of two orders, as functors
Tensor swish(const Operand& x, double beta);  // with a parameter
Tensor cube(const Operand& x);                // a gradient of public operators
Tensor log_cosh(const Operand& prediction, const Operand& target);        // of two
Tensor blend(const Operand& weight, const Operand& a, const Operand& b);  // of three
Tensor heaviside(const Operand& x);                                       // without a gradient

// Returns x doubled, by an operator with kernels of its own.
Tensor doubled(const Operand& x);

}  // namespace ebb::tests
