#pragma once
#include "ebb/core/ops/arguments.h"

namespace ebb {

// a where the bool condition is true, else b. Any dtype. All three broadcast by NumPy's
// rules; a or b may be a plain number, which takes the other's dtype. An element's gradient goes to
// where it came from, and the other side gets 0 for it, even if its own gradient there would be
// NaN. Throws ShapeError for shapes that do not broadcast, a condition that is not bool, dtypes
// that differ and a number that the dtype of integers does not have; Error for two numbers.
Tensor where(const Operand& condition, const Operand& a, const Operand& b);

// x with `value` where the mask is true. The same as where(mask, value, x) with the mask broadcast
// to the shape of x, and throws as where.
Tensor masked_fill(const Operand& x, const Operand& mask, double value);

// Inputs: the condition, then the tensors among a and b.
extern const BinaryOpDef where_op;
// Inputs: the mask, x.
extern const OpDef masked_fill_op;

}  // namespace ebb
