#pragma once
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

// Signs, integer parts, quotients and remainders element by element, exact, of x's shape and dtype,
// which is floating; abs, sign, remainder and floor_divide take integers too. Zeros, infinities and
// NaN as in NumPy. Two operands are as in core/ops/arithmetic.h. Throw ShapeError for shapes that
// do not broadcast and for other dtypes.
#include "ebb/core/ops/declare_pointwise.inc"
// Declares each operator of the family.
#include "ebb/core/kernels/functors/rounding.inc"
#include "ebb/core/ops/undefine_pointwise.inc"

}  // namespace ebb
