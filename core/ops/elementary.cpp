#include "ebb/core/ops/elementary.h"

#include "ebb/core/kernels/functors/elementary.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/pointwise_rules.h"

namespace ebb {

#include "ebb/core/ops/define_pointwise.inc"
// Defines each operator of the family.
#include "ebb/core/kernels/functors/elementary.inc"
#include "ebb/core/ops/undefine_pointwise.inc"

using detail::Gradient, detail::unary;

constinit const OpDef exp_op = unary<functors::Exp>(
    "exp", {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() * g.take_y()}; },
            .keeps = output(0)});

constinit const OpDef log_op = unary<functors::Log>(
    "log", {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() / g.take_x(0)}; },
            .keeps = input(0)});

constinit const OpDef tanh_op = unary<functors::Tanh>(
    "tanh",
    {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() * (1 - square(g.take_y()))}; },
     .keeps = output(0)});

}  // namespace ebb
