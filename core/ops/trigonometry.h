#pragma once
#include "ebb/core/ops/arguments.h"

namespace ebb {

// Trigonometric and hyperbolic functions element by element, of x's shape and floating dtype.
// Accuracy is as in core/ops/elementary.h. Throw ShapeError for other dtypes.
#define EBB_FAMILY "ebb/core/kernels/functors/trigonometry.inc"
#include "ebb/core/ops/declare_pointwise.inc"

}  // namespace ebb
