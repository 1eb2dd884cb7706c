#include "ebb/core/ops/powers.h"

#include <cmath>
#include <numbers>

#include "ebb/core/kernels/functors/powers.h"
#include "ebb/core/kernels/powers.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/pointwise_rules.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/where.h"

namespace ebb {

#define EBB_FAMILY "ebb/core/kernels/functors/powers.inc"
#include "ebb/core/ops/define_pointwise.inc"

using detail::binary, detail::for_both, detail::from_x, detail::from_y, detail::Gradient,
    detail::number, detail::unary;
using std::numbers::ln2, std::numbers::log10e, std::numbers::log2e;

constinit const OpDef expm1_op =
    unary<functors::Expm1>("expm1", from_y([](Operand dy, Operand y) { return dy * (y + 1); }));
constinit const OpDef log1p_op =
    unary<functors::Log1p>("log1p", from_x([](Operand dy, Operand x) { return dy / (x + 1); }));
constinit const OpDef log2_op =
    unary<functors::Log2>("log2", from_x([](Operand dy, Operand x) { return dy * log2e / x; }));
constinit const OpDef log10_op =
    unary<functors::Log10>("log10", from_x([](Operand dy, Operand x) { return dy * log10e / x; }));
constinit const OpDef exp2_op =
    unary<functors::Exp2>("exp2", from_y([](Operand dy, Operand y) { return dy * ln2 * y; }));
constinit const OpDef rsqrt_op = unary<functors::Rsqrt>(
    "rsqrt", from_y([](Operand dy, Tensor y) { return dy * -0.5 * (square(y) * y); }));

namespace {

// 1 where x is 0, else 0.
Tensor is_zero(const Tensor& x) { return 1 - abs(sign(x)); }

constexpr BinaryOpDef with_quick_numbers(BinaryOpDef ops) {
  ops.number_right.cpu = {cpu::pow_number};
  return ops;
}

}  // namespace

// The gradients are b a^(b - 1) and a^b log(a). Where b is 0 the first takes the power 0, and where
// a is 0 and a^b finite the second takes log(1): both are then 0, not NaN.
constinit const BinaryOpDef pow_op = with_quick_numbers(binary<functors::Power>(
    "pow",
    {.tensors = {
         .gradient = [](Gradient g) -> Tensors {
           const Tensor a = g.x(0);
           const auto of_a = [&](Operand dy) {
             const Tensor b = g.x(1);
             return dy * b * pow(a, b - 1 + is_zero(b));
           };
           const auto of_b = [&](Operand dy) {
             const Tensor positive = where((a == 0) & (abs(g.y()) <= 1), 1, a);
             return dy * g.take_y() * log(positive);
           };
           return for_both(g, of_a, of_b);
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
                     .keeps = output(0)}}));

}  // namespace ebb
