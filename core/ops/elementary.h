#pragma once
#include "ebb/core/ops/arguments.h"

namespace ebb {

// Elementary functions element by element, of x's shape and floating dtype, at extremes as IEEE 754
// has it. Error bounds are for the CPU, where denormals count as zeros; dense's activations and
// lstm's gates are the same functions. Throw ShapeError for other dtypes.
#define EBB_FAMILY "ebb/core/kernels/functors/elementary.inc"
#include "ebb/core/ops/declare_pointwise.inc"

}  // namespace ebb
