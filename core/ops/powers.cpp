#include "ebb/core/ops/powers.h"

#include <cmath>
#include <numbers>

#include "ebb/core/kernels/functors/powers.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/pointwise_rules.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/rounding.h"
#include "ebb/core/ops/where.h"

namespace ebb {

#include "ebb/core/ops/define_pointwise.inc"
// Defines each operator of the family.
#include "ebb/core/kernels/functors/powers.inc"
#include "ebb/core/ops/undefine_pointwise.inc"

using detail::binary, detail::first_dy, detail::Gradient, detail::number, detail::unary;

constinit const OpDef expm1_op = unary<functors::Expm1>(
    "expm1", {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() * (g.take_y() + 1)}; },
              .keeps = output(0)});

constinit const OpDef log1p_op = unary<functors::Log1p>(
    "log1p", {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() / (g.take_x(0) + 1)}; },
              .keeps = input(0)});

constinit const OpDef log2_op =
    unary<functors::Log2>("log2", {.gradient = [](Gradient g) -> Tensors {
                                     return {g.take_dy() * std::numbers::log2e / g.take_x(0)};
                                   },
                                   .keeps = input(0)});

constinit const OpDef log10_op =
    unary<functors::Log10>("log10", {.gradient = [](Gradient g) -> Tensors {
                                       return {g.take_dy() * std::numbers::log10e / g.take_x(0)};
                                     },
                                     .keeps = input(0)});

constinit const OpDef exp2_op =
    unary<functors::Exp2>("exp2", {.gradient = [](Gradient g) -> Tensors {
                                     return {g.take_dy() * std::numbers::ln2 * g.take_y()};
                                   },
                                   .keeps = output(0)});

constinit const OpDef rsqrt_op =
    unary<functors::Rsqrt>("rsqrt", {.gradient = [](Gradient g) -> Tensors {
                                       const Tensor y = g.take_y();
                                       return {g.take_dy() * -0.5 * (square(y) * y)};
                                     },
                                     .keeps = output(0)});

namespace {

// 1 where x is 0, else 0.
Tensor is_zero(const Tensor& x) { return 1 - abs(sign(x)); }

}  // namespace

// The gradients are b a^(b - 1) and a^b log(a). Where b is 0 the first takes the power 0, and where
// a is 0 and a^b finite the second takes log(1): both are then 0, not NaN.
constinit const BinaryOpDef pow_op = binary<functors::Power>(
    "pow",
    {.tensors = {
         .gradient = [](Gradient g) -> Tensors {
           const Tensor a = g.x(0);
           Tensor da, db;
           if (g.wants(0)) {
             const Tensor b = g.x(1);
             da = sum_like(first_dy(g) * b * pow(a, b - 1 + is_zero(b)), a);
           }
           if (g.wants(1)) {
             const Tensor positive = where((a == 0) & (abs(g.y()) <= 1), 1, a);
             db = sum_like(g.take_dy() * g.take_y() * log(positive), g.x(1));
           }
           return {da, db};
         },
         .keeps_input = [](std::size_t i, const IndexSet& wants) { return i == 0 || wants.has(0); },
         .keeps_output = [](std::size_t, const IndexSet& wants) { return wants.has(1); }},
     .number_right = {.gradient = [](Gradient g) -> Tensors {
                        const double n = number(g);
                        if (n == 0) return {Tensor()};
                        return {g.take_dy() * n * pow(g.take_x(0), n - 1)};
                      },
                      .keeps = input(0)},
     .number_left = {.gradient = [](Gradient g) -> Tensors {
                       const double n = number(g);
                       if (n == 0) return {g.take_dy() * where(abs(g.y()) <= 1, 0, -g.y())};
                       return {g.take_dy() * std::log(n) * g.take_y()};
                     },
                     .keeps = output(0)}});

}  // namespace ebb
