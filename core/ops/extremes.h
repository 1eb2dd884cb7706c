#pragma once
#include <optional>

#include "ebb/core/ops/arguments.h"

namespace ebb {

// Extremes element by element, exact, of a floating dtype; maximum and minimum of integers too. Two
// operands are as in core/ops/arithmetic.h. Throw ShapeError for shapes that do not broadcast and
// for other dtypes.
#define EBB_FAMILY "ebb/core/kernels/functors/extremes.inc"
#include "ebb/core/ops/declare_pointwise.inc"

// x clamped to [low, high], either of which may be left out. minimum(maximum(x, low), high) in one
// operator; of integers in two, with integer bounds. NaN stays NaN; the gradient passes where low
// <= x <= high. Throws Error for a bound that is NaN, or that an integer x cannot have.
Tensor clamp(const Operand& x, std::optional<double> low, std::optional<double> high = {});

}  // namespace ebb
