#pragma once
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

// exp(x[i]) / sum_j exp(x[j]) over the last axis, without overflow; x [..., classes].
// On the CPU within 6 ulp of the exact value (4.5 measured), that of an unlikely class too.
Tensor softmax(const Operand& x);

// The mean over rows of logsumexp(scores[i]) - scores[i][labels[i]], a scalar: scores [n, classes],
// labels [n] (i32, i64). A label out of range makes the loss NaN. Throws ShapeError.
Tensor softmax_cross_entropy(const Operand& scores, const Operand& labels);

// mean(square(a - b)), a scalar. a and b have one shape: nothing broadcasts here, since a column
// beside a row would silently compare everything with everything. Throws ShapeError.
Tensor mse(const Operand& a, const Operand& b);

extern const OpDef softmax_op, softmax_cross_entropy_op, softmax_cross_entropy_backward_op,
    difference_op;

}  // namespace ebb
