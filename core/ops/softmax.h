#pragma once
#include "ebb/core/ops/arguments.h"

namespace ebb {

// exp(x[i]) / sum_j exp(x[j]) along an axis, without overflow. Of x's shape and floating dtype. On
// the CPU within 6 ulp of the exact value (4.5 measured), for an unlikely class too.
// Throws ShapeError for an axis that is not there.
Tensor softmax(const Operand& x, int axis = -1);

// The logarithm of softmax, x[i] - log(sum_j exp(x[j])), finite for classes too unlikely for
// softmax. Throws as softmax.
Tensor log_softmax(const Operand& x, int axis = -1);

extern const OpDef softmax_op, log_softmax_op;

}  // namespace ebb
