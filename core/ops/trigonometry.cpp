#include "ebb/core/ops/trigonometry.h"

#include "ebb/core/kernels/functors/trigonometry.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/pointwise_rules.h"

namespace ebb {

#include "ebb/core/ops/define_pointwise.inc"
// The list:
#include "ebb/core/kernels/functors/trigonometry.inc"

using detail::Gradient, detail::unary;

constinit const OpDef sin_op = unary<functors::Sin>(
    "sin", {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() * cos(g.take_x(0))}; },
            .keeps = input(0)});

constinit const OpDef cos_op = unary<functors::Cos>(
    "cos", {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() * -sin(g.take_x(0))}; },
            .keeps = input(0)});

}  // namespace ebb
