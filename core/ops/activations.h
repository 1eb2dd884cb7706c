#pragma once
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

// Activations element by element (tanh is in core/ops/elementary.h, where the words on accuracy
// are), of x's shape and dtype, a floating one. Throw ShapeError for others.
#include "ebb/core/ops/declare_pointwise.inc"
// The list:
#include "ebb/core/kernels/functors/activations.inc"
#undef EBB_UNARY
#undef EBB_BINARY
#undef EBB_PAIR
#undef EBB_MAP
#undef EBB_ZIP

}  // namespace ebb
