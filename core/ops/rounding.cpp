#include "ebb/core/ops/rounding.h"

#include "ebb/core/kernels/functors/rounding.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/pointwise_rules.h"
#include "ebb/core/ops/reduce.h"

namespace ebb {

#define EBB_FAMILY "ebb/core/kernels/functors/rounding.inc"
#include "ebb/core/ops/define_pointwise.inc"

using detail::binary_number, detail::first_dy, detail::from_x, detail::Gradient,
    detail::kNoGradient, detail::number, detail::unary, detail::unary_number;

constinit const OpDef abs_op =
    unary_number<functors::Abs>("abs", from_x([](Operand dy, Operand x) { return dy * sign(x); }));
constinit const OpDef sign_op = unary_number<functors::Sign>("sign", kNoGradient);
constinit const OpDef floor_op = unary<functors::Floor>("floor", kNoGradient);
constinit const OpDef ceil_op = unary<functors::Ceil>("ceil", kNoGradient);
constinit const OpDef round_op = unary<functors::Round>("round", kNoGradient);
constinit const OpDef trunc_op = unary<functors::Trunc>("trunc", kNoGradient);

constinit const BinaryOpDef remainder_op = binary_number<functors::Remainder>(
    "remainder",
    {.tensors = {.gradient = [](Gradient g) -> Tensors {
                   Tensor da, db;
                   if (g.wants(0)) da = sum_like(first_dy(g), g.x(0));
                   if (g.wants(1))
                     db = -sum_like(g.take_dy() * floor_divide(g.take_x(0), g.x(1)), g.x(1));
                   return {da, db};
                 },
                 .keeps_input = [](std::size_t, const IndexSet& wants) { return wants.has(1); }},
     .number_right = {.gradient = detail::passes_on},
     .number_left = {.gradient = [](Gradient g) -> Tensors {
                       return {g.take_dy() * -floor_divide(number(g), g.take_x(0))};
                     },
                     .keeps = input(0)}},
    detail::infer_quotient);

constinit const BinaryOpDef floor_divide_op = binary_number<functors::FloorDivide>(
    "floor_divide", {kNoGradient, kNoGradient, kNoGradient}, detail::infer_quotient);

}  // namespace ebb
