#include "ebb/core/ops/extremes.h"

#include <cmath>
#include <limits>

#include "ebb/core/base/called.h"
#include "ebb/core/base/error.h"
#include "ebb/core/kernels/functors/extremes.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/pointwise_rules.h"
#include "ebb/core/ops/reduce.h"

namespace ebb {

#define EBB_FAMILY "ebb/core/kernels/functors/extremes.inc"
#include "ebb/core/ops/define_pointwise.inc"

using detail::binary, detail::binary_number, detail::for_both, detail::Gradient,
    detail::kNoGradient, detail::number, detail::pair, detail::unary;

namespace {

// The share of a in the gradient of the extreme of a and b.
template <bool kLargest>
Tensor share(const Operand& a, const Operand& b) {
  return kLargest ? share_of_maximum(a, b) : share_of_maximum(b, a);
}

template <bool kLargest>
constexpr detail::GradientRule kBesideNumber = {
    .gradient = [](Gradient g) -> Tensors {
      return {g.take_dy() * share<kLargest>(g.take_x(0), number(g))};
    },
    .keeps = input(0)};
template <bool kLargest>
constexpr detail::BinaryGradientRules kShares = {
    .tensors = {.gradient = [](Gradient g) -> Tensors {
                  const Tensor a = g.x(0), b = g.x(1);
                  return for_both(
                      g, [&](Operand dy) { return dy * share<kLargest>(a, b); },
                      [&](Operand dy) { return dy * share<kLargest>(b, a); });
                },
                .keeps = input(0) | input(1)},
    .number_right = kBesideNumber<kLargest>,
    .number_left = kBesideNumber<kLargest>};

}  // namespace

constinit const BinaryOpDef maximum_op = binary_number<functors::Maximum>("maximum", kShares<true>);
constinit const BinaryOpDef minimum_op =
    binary_number<functors::Minimum>("minimum", kShares<false>);
constinit const BinaryOpDef share_of_maximum_op =
    binary<functors::ShareOfMaximum>("share_of_maximum", {kNoGradient, kNoGradient, kNoGradient});

namespace {
// clamp of integers: two operators, which refuse bounds that the dtype does not have.
Tensor clamp_integers(const Operand& x, std::optional<double> low, std::optional<double> high) {
  const detail::CalledScope called("clamp");
  if (!low && !high) return copy(x);
  Tensor y = x.take();
  if (low) y = maximum({std::move(y), x.site()}, {*low, x.site()});
  if (high) y = minimum({std::move(y), x.site()}, {*high, x.site()});
  return y;
}
}  // namespace

Tensor clamp(const Operand& x, std::optional<double> low, std::optional<double> high) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const functors::Bounds bounds{low.value_or(-kInfinity), high.value_or(kInfinity)};
  if (std::isnan(bounds.low) || std::isnan(bounds.high))
    detail::refuse("clamp", "a bound is NaN", x.site());
  if (!x.is_number() && x.tensor().defined() && !is_floating(x.tensor().dtype()))
    return clamp_integers(x, low, high);
  return detail::apply_to(clamp_op, x, bounds);
}

constinit const OpDef clamp_op =
    unary<functors::Clamp>("clamp", detail::kFromInput<clamp_gradient_op>);
constinit const OpDef clamp_gradient_op =
    pair<functors::ClampGradient>("clamp_gradient", detail::kLinearInFirst<clamp_gradient_op>);

}  // namespace ebb
