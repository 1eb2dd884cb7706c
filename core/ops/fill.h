#pragma once
#include "ebb/core/ops/arguments.h"

namespace ebb {

// A tensor of x's shape and dtype filled with `value`. Reads nothing of x but its shape.
Tensor full_like(const Operand& x, double value);
// full_like() by the operator's own name.
Tensor fill_like(const Operand& x, double value);

// A tensor of x's shape and dtype filled with 0.
Tensor zeros_like(const Operand& x);
// A tensor of x's shape and dtype filled with 1.
Tensor ones_like(const Operand& x);

extern const OpDef fill_like_op;

}  // namespace ebb
