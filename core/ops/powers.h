#pragma once
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

// Powers, exponentials and logarithms; more of them, and notes on accuracy and extremes, in
// core/ops/elementary.h. Two operands are as in core/ops/arithmetic.h. Throw ShapeError for shapes
// that do not broadcast and for dtypes that are not floating.
#include "ebb/core/ops/declare_pointwise.inc"
// Declares each operator of the family.
#include "ebb/core/kernels/functors/powers.inc"
#include "ebb/core/ops/undefine_pointwise.inc"

}  // namespace ebb
