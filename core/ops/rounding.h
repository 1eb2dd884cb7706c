#pragma once
#include "ebb/core/ops/arguments.h"

namespace ebb {

// Signs, integer parts, quotients and remainders element by element, exact, of x's shape and dtype,
// which is floating; abs, sign, remainder and floor_divide take integers too. Zeros, infinities and
// NaN as in NumPy. Two operands are as in core/ops/arithmetic.h. Throw ShapeError for shapes that
// do not broadcast and for other dtypes.
#define EBB_FAMILY "ebb/core/kernels/functors/rounding.inc"
#include "ebb/core/ops/declare_pointwise.inc"

}  // namespace ebb
