#pragma once
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

// Elementary functions element by element, of x's shape and floating dtype, at extremes as IEEE 754
// has it. Error bounds are for the CPU, where denormals count as zeros; dense's activations and
// lstm's gates are the same functions. Throw ShapeError for other dtypes.
#include "ebb/core/ops/declare_pointwise.inc"
// Declares each operator of the family.
#include "ebb/core/kernels/functors/elementary.inc"
#include "ebb/core/ops/undefine_pointwise.inc"

}  // namespace ebb
