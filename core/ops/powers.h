#pragma once
#include "ebb/core/ops/binary_op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

// Powers, and exponentials and logarithms beside those of core/ops/elementary.h, where the words on
// accuracy and extremes are. Two operands are as in core/ops/arithmetic.h. Throw ShapeError for
// shapes that do not broadcast and for dtypes that are not floating.
#include "ebb/core/ops/declare_pointwise.inc"
// The list:
#include "ebb/core/kernels/functors/powers.inc"
#include "ebb/core/ops/undefine_pointwise.inc"

}  // namespace ebb
