#pragma once
#include "ebb/core/kernels/linear.h"
#include "ebb/core/ops/arguments.h"

namespace ebb {

struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};

// The product of matrices a [..., m, k] and b [..., k, n]. Options transpose either first. Gives
// [..., m, n], of their dtype. Leading axes broadcast by NumPy's rules. A vector a [k] is one row,
// b [k] one column; the result lacks that axis. The gradient of a broadcast factor is summed over
// the matrices that it meets, all parts in memory at once; where b is one matrix [k, n] and a is
// not transposed, all rows are one product, as in dense(). Throws ShapeError.
Tensor matmul(const Operand& a, const Operand& b, MatmulOptions options = {});

// A fully connected layer, activation(x w + b). x [..., in], weight w [in, out] and bias b [out]
// give [..., out], of their dtype. With relu, tanh and sigmoid one kernel forward and one backward;
// other activations are operators of their own behind it. Throws ShapeError.
Tensor dense(const Operand& x, const Operand& w, const Operand& b,
             Activation activation = Activation::none);
// Without a bias.
Tensor dense(const Operand& x, const Operand& w, Activation activation = Activation::none);

namespace detail {
// The activation as an operator of its own; x itself where there is none.
Tensor activate(const Operand& x, Activation activation);
}  // namespace detail

// Two definitions of dense: its gradient reads the result only where there is an activation.
extern const OpDef matmul_op, dense_op, dense_activated_op, dense_backward_op,
    activation_backward_op;

}  // namespace ebb
