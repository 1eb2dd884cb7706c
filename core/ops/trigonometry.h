#pragma once
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

// Trigonometric and hyperbolic functions element by element, of x's shape and floating dtype.
// Accuracy is as in core/ops/elementary.h. Throw ShapeError for other dtypes.
#include "ebb/core/ops/declare_pointwise.inc"
// Declares each operator of the family.
#include "ebb/core/kernels/functors/trigonometry.inc"
#include "ebb/core/ops/undefine_pointwise.inc"

}  // namespace ebb
