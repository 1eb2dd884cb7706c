#pragma once
#include "ebb/core/ops/arguments.h"

namespace ebb {

struct CumsumOptions {
  bool exclusive = false;  // without the element itself: the first sum is 0
  bool reverse = false;    // from the end of the axis
};

// The running sums of x along an axis (negative: from the end), 1 3 6 for 1 2 3. Floating, added up
// in double and each rounded once, or i32 and i64, which wrap around. Throws ShapeError.
Tensor cumsum(const Operand& x, int axis, const CumsumOptions& options = {});

// The running products of x along an axis, 2 6 24 for 2 3 4, exclusive 1 2 6. Multiplied in double;
// a GPU multiplies a long row in parts, and overflows as soon as one of them does. Gradients of any
// order are right where elements are 0 too; they take three f64 tensors of x's shape meanwhile.
using CumprodOptions = CumsumOptions;
Tensor cumprod(const Operand& x, int axis, const CumprodOptions& options = {});

namespace detail {
// For each element of x the product of all others along the axis (f64). Nothing is divided, so
// derivatives of any order are right where elements are 0.
Tensor products_of_others(const Tensor& x, int axis);
}  // namespace detail

extern const OpDef cumsum_op, cumprod_op, recurrence_op;

}  // namespace ebb
