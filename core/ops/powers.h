#pragma once
#include "ebb/core/ops/arguments.h"

namespace ebb {

// Powers, exponentials and logarithms; more of them, and notes on accuracy and extremes, in
// core/ops/elementary.h. Two operands are as in core/ops/arithmetic.h. Throw ShapeError for shapes
// that do not broadcast and for dtypes that are not floating.
#define EBB_FAMILY "ebb/core/kernels/functors/powers.inc"
#include "ebb/core/ops/declare_pointwise.inc"

}  // namespace ebb
