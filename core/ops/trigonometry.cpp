#include "ebb/core/ops/trigonometry.h"

#include <cmath>

#include "ebb/core/kernels/functors/trigonometry.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/pointwise_rules.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/where.h"

namespace ebb {

#define EBB_FAMILY "ebb/core/kernels/functors/trigonometry.inc"
#include "ebb/core/ops/define_pointwise.inc"

using detail::binary, detail::for_both, detail::from_x, detail::from_y, detail::Gradient,
    detail::number, detail::unary;

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

constinit const OpDef sin_op =
    unary<functors::Sin>("sin", from_x([](Operand dy, Operand x) { return dy * cos(x); }));
constinit const OpDef cos_op =
    unary<functors::Cos>("cos", from_x([](Operand dy, Operand x) { return dy * -sin(x); }));
constinit const OpDef tan_op =
    unary<functors::Tan>("tan", from_y([](Operand dy, Operand y) { return dy * (square(y) + 1); }));
constinit const OpDef asin_op =
    unary<functors::Asin>("asin", from_x([](Operand dy, Tensor x) { return dy * secant(x); }));
constinit const OpDef acos_op =
    unary<functors::Acos>("acos", from_x([](Operand dy, Tensor x) { return dy * -secant(x); }));
constinit const OpDef atan_op = unary<functors::Atan>(
    "atan", from_x([](Operand dy, Operand x) { return dy / (square(x) + 1); }));
constinit const OpDef sinh_op =
    unary<functors::Sinh>("sinh", from_x([](Operand dy, Operand x) { return dy * cosh(x); }));
constinit const OpDef cosh_op =
    unary<functors::Cosh>("cosh", from_x([](Operand dy, Operand x) { return dy * sinh(x); }));
constinit const OpDef asinh_op = unary<functors::Asinh>(
    "asinh", from_x([](Operand dy, Tensor x) { return dy / length_with_1(x); }));
constinit const OpDef acosh_op = unary<functors::Acosh>(
    "acosh", from_x([](Operand dy, Tensor x) { return dy * rsqrt(x - 1) * rsqrt(x + 1); }));
constinit const OpDef atanh_op = unary<functors::Atanh>(
    "atanh", from_x([](Operand dy, Tensor x) { return dy / ((1 - x) * (1 + x)); }));

constinit const BinaryOpDef atan2_op = binary<functors::Atan2>(
    "atan2", {.tensors = {.gradient = [](Gradient g) -> Tensors {
                            const Tensor a = g.x(0), b = g.x(1), larger = maximum(abs(a), abs(b));
                            return for_both(
                                g, [&](Operand dy) { return dy * over_squares(b, a, larger); },
                                [&](Operand dy) { return dy * -over_squares(a, b, larger); });
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
