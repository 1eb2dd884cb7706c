#pragma once
#include "ebb/core/kernels/linear.h"
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};

// The product of matrices a [..., m, k] and b [..., k, n]. Either is transposed first where the
// options say so. Gives [..., m, n], of their dtype. Leading axes broadcast by NumPy's rules. A
// vector a [k] is one row and b [k] one column, whose axis the result does not have. The gradient
// of a factor that meets several is the sum over them, all parts in memory at once; b [k, n] and an
// a that is not transposed are one product, as in dense(). Throws ShapeError.
Tensor matmul(const Operand& a, const Operand& b, MatmulOptions options = {});

// A fully connected layer, activation(x w + b). x [..., in], weight w [in, out] and bias b [out]
// give
// [..., out], of their dtype. One kernel forward, one backward, with relu, tanh and sigmoid; the
// others are operators of their own behind it. Throws ShapeError.
Tensor dense(const Operand& x, const Operand& w, const Operand& b,
             Activation activation = Activation::none);
// Without a bias.
Tensor dense(const Operand& x, const Operand& w, Activation activation = Activation::none);

namespace detail {
// The activation as an operator of its own; x itself where there is none.
Tensor activate(const Operand& x, Activation activation);
}  // namespace detail

// The gradient of dense reads its result only where there is an activation: two definitions.
extern const OpDef matmul_op, dense_op, dense_activated_op, dense_backward_op,
    activation_backward_op;

}  // namespace ebb
