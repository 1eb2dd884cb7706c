#include "ebb/core/ops/trigonometry.h"

#include <cmath>

#include "ebb/core/kernels/functors/trigonometry.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/extremes.h"
#include "ebb/core/ops/pointwise_rules.h"
#include "ebb/core/ops/powers.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/rounding.h"
#include "ebb/core/ops/where.h"

namespace ebb {

#include "ebb/core/ops/define_pointwise.inc"
// Defines each operator of the family.
#include "ebb/core/kernels/functors/trigonometry.inc"
#include "ebb/core/ops/undefine_pointwise.inc"

using detail::binary, detail::first_dy, detail::Gradient, detail::number, detail::unary;

constinit const OpDef sin_op = unary<functors::Sin>(
    "sin", {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() * cos(g.take_x(0))}; },
            .keeps = input(0)});

constinit const OpDef cos_op = unary<functors::Cos>(
    "cos", {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() * -sin(g.take_x(0))}; },
            .keeps = input(0)});

constinit const OpDef tan_op = unary<functors::Tan>(
    "tan",
    {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() * (square(g.take_y()) + 1)}; },
     .keeps = output(0)});

namespace {

// 1 / sqrt(1 - x^2), also next to 1.
Tensor secant(const Tensor& x) { return rsqrt((1 - x) * (1 + x)); }

// sqrt(x^2 + 1), where x^2 alone may overflow.
Tensor length_with_1(const Tensor& x) {
  const Tensor size = abs(x), is_large = size > 1, larger = where(is_large, size, 1);
  return larger * sqrt(square(where(is_large, 1, x) / larger) + 1);
}

// a / (a^2 + b^2). `larger` is the larger of |a| and |b|: the squares of the quotients by it
// neither overflow nor vanish.
Tensor over_squares(const Operand& a, const Operand& b, const Tensor& larger) {
  const Tensor p = a / larger, q = b / larger;
  return p / (square(p) + square(q)) / larger;
}

}  // namespace

constinit const OpDef asin_op = unary<functors::Asin>(
    "asin", {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() * secant(g.take_x(0))}; },
             .keeps = input(0)});

constinit const OpDef acos_op = unary<functors::Acos>(
    "acos", {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() * -secant(g.take_x(0))}; },
             .keeps = input(0)});

constinit const OpDef atan_op = unary<functors::Atan>(
    "atan",
    {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() / (square(g.take_x(0)) + 1)}; },
     .keeps = input(0)});

constinit const OpDef sinh_op = unary<functors::Sinh>(
    "sinh", {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() * cosh(g.take_x(0))}; },
             .keeps = input(0)});

constinit const OpDef cosh_op = unary<functors::Cosh>(
    "cosh", {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() * sinh(g.take_x(0))}; },
             .keeps = input(0)});

constinit const OpDef asinh_op = unary<functors::Asinh>(
    "asinh",
    {.gradient = [](Gradient g) -> Tensors { return {g.take_dy() / length_with_1(g.take_x(0))}; },
     .keeps = input(0)});

constinit const OpDef acosh_op =
    unary<functors::Acosh>("acosh", {.gradient = [](Gradient g) -> Tensors {
                                       const Tensor x = g.take_x(0);
                                       return {g.take_dy() * rsqrt(x - 1) * rsqrt(x + 1)};
                                     },
                                     .keeps = input(0)});

constinit const OpDef atanh_op =
    unary<functors::Atanh>("atanh", {.gradient = [](Gradient g) -> Tensors {
                                       const Tensor x = g.take_x(0);
                                       return {g.take_dy() / ((1 - x) * (1 + x))};
                                     },
                                     .keeps = input(0)});

constinit const BinaryOpDef atan2_op = binary<functors::Atan2>(
    "atan2", {.tensors = {.gradient = [](Gradient g) -> Tensors {
                            const Tensor a = g.x(0), b = g.x(1), larger = maximum(abs(a), abs(b));
                            Tensor da, db;
                            if (g.wants(0))
                              da = sum_like(first_dy(g) * over_squares(b, a, larger), a);
                            if (g.wants(1))
                              db = sum_like(g.take_dy() * -over_squares(a, b, larger), b);
                            return {da, db};
                          },
                          .keeps = input(0) | input(1)},
              .number_right = {.gradient = [](Gradient g) -> Tensors {
                                 const Tensor a = g.x(0);
                                 const Tensor larger = maximum(abs(a), std::abs(number(g)));
                                 return {g.take_dy() * over_squares(number(g), a, larger)};
                               },
                               .keeps = input(0)},
              .number_left = {.gradient = [](Gradient g) -> Tensors {
                                const Tensor b = g.x(0);
                                const Tensor larger = maximum(abs(b), std::abs(number(g)));
                                return {g.take_dy() * -over_squares(number(g), b, larger)};
                              },
                              .keeps = input(0)}});

}  // namespace ebb
