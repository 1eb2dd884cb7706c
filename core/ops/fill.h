#pragma once
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

// A tensor of x's shape and dtype filled with `value`. Reads nothing of x but its shape.
Tensor fill_like(const Operand& x, double value);

// The same with 0 and with 1.
inline Tensor zeros_like(const Operand& x) { return fill_like(x, 0); }
inline Tensor ones_like(const Operand& x) { return fill_like(x, 1); }

extern const OpDef fill_like_op;

}  // namespace ebb
