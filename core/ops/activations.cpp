#include "ebb/core/ops/activations.h"

#include <numbers>

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/functors/activations.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/extremes.h"
#include "ebb/core/ops/pointwise_rules.h"

namespace ebb {

#define EBB_FAMILY "ebb/core/kernels/functors/activations.inc"
#include "ebb/core/ops/define_pointwise.inc"

using detail::from_x, detail::from_y, detail::Gradient, detail::kFromInput, detail::kFromOutput,
    detail::kLinearInFirst, detail::pair, detail::unary;

constinit const OpDef sigmoid_op =
    unary<functors::Sigmoid>("sigmoid", from_y([](Operand dy, Tensor y) {
                               Tensor rest = 1 - y;
                               return dy * (std::move(y) * std::move(rest));
                             }));
constinit const OpDef softplus_op = unary<functors::Softplus>(
    "softplus", from_x([](Operand dy, Operand x) { return dy * sigmoid(x); }));

constinit const OpDef relu_op = unary<functors::Relu>("relu", kFromOutput<relu_gradient_op>);
constinit const OpDef relu_gradient_op =
    pair<functors::ReluGradient>("relu_gradient", kLinearInFirst<relu_gradient_op>);

constinit const OpDef leaky_relu_op =
    unary<functors::LeakyRelu>("leaky_relu", kFromOutput<leaky_relu_gradient_op>);
constinit const OpDef leaky_relu_gradient_op = pair<functors::LeakyReluGradient>(
    "leaky_relu_gradient", kLinearInFirst<leaky_relu_gradient_op>);

namespace {

// The gradient is computed from the result, which must have the sign of x.
void require_not_negative(const char* op, const char* what, double value, CallSite site) {
  if (!(value >= 0)) detail::refuse(op, std::string("takes ") + what + " of 0 or more", site);
}

// The gradient of a gradient op(dy, x): op itself for dy, dy times the second derivative for x.
bool keeps_for_slope(std::size_t i, const IndexSet& wants) { return i == 1 || wants.has(1); }
template <const OpDef& op, Tensor (*second_derivative)(const Tensor& x)>
constexpr detail::GradientRule kOfSlope = {.gradient = [](Gradient g) -> Tensors {
                                             const Tensor x = g.x(1);
                                             Tensor d_dy, d_x;
                                             if (g.wants(0))
                                               d_dy = detail::apply_to(op, {g.dy(), x});
                                             if (g.wants(1)) {
                                               const Tensor curve = second_derivative(x);
                                               d_x = g.take_dy() * g.take_x(0) * curve;
                                             }
                                             return {d_dy, d_x};
                                           },
                                           .keeps_input = keeps_for_slope};

// With s = sigmoid(x), the derivative of s (1 + x (1 - s)) is s (1 - s) (2 + x (1 - 2 s)).
Tensor silu_curve(const Tensor& x) {
  const Tensor s = sigmoid(x);
  return s * (1 - s) * (2 + x * (1 - 2 * s));
}

// The derivative of P(x) + x p(x), where p is the density of P, is p(x) (2 - x^2). It is 0 before
// |x| = 40, where x is cut: infinite powers would make it NaN.
Tensor gelu_curve(const Tensor& x) {
  constexpr double kAtZero = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  const Tensor squared = square(clamp(x, -40, 40));
  return kAtZero * exp(squared * -0.5) * (2 - squared);
}

// With s = sigmoid(z), the derivative of s (1 + x z' (1 - s)) is
// s (1 - s) (2 z' + x z'' + x z'^2 (1 - 2 s)), below 1e-57 at |x| = 12, where x is cut. There f16
// has all of it.
Tensor gelu_tanh_curve(const Tensor& any) {
  using Bell = functors::TanhBell<double>;
  const Tensor x = clamp(any, -12, 12), squared = square(x),
               z = x * (Bell::kFirst + Bell::kThird * squared), s = sigmoid(z), rest = sigmoid(-z),
               slope = Bell::kFirst + 3 * Bell::kThird * squared;
  return s * rest * (2 * slope + 6 * Bell::kThird * squared + x * square(slope) * (rest - s));
}

}  // namespace

Tensor leaky_relu(const Operand& x, double slope) {
  require_not_negative("leaky_relu", "a slope", slope, x.site());
  return detail::apply_to(leaky_relu_op, x, functors::Slope{slope});
}
Tensor elu(const Operand& x, double alpha) {
  require_not_negative("elu", "an alpha", alpha, x.site());
  return detail::apply_to(elu_op, x, functors::Alpha{alpha});
}
Tensor gelu(const Operand& x, GeluOptions options) {
  const detail::CalledScope called("gelu");
  return detail::apply_to(options.approximate ? gelu_tanh_op : gelu_op, x);
}

constinit const OpDef elu_op = unary<functors::Elu>("elu", kFromOutput<elu_gradient_op>);

// dy (y + alpha) below 0, dy above.
constinit const OpDef elu_gradient_op = pair<functors::EluGradient>(
    "elu_gradient", {.gradient = [](Gradient g) -> Tensors {
                       const Tensor y = g.x(1);
                       Tensor d_dy, d_y;
                       if (g.wants(0))
                         d_dy = detail::apply_to(elu_gradient_op, {g.dy(), y}, g.node().attributes);
                       if (g.wants(1)) d_y = relu_gradient(g.take_dy() * g.take_x(0), -y);
                       return {d_dy, d_y};
                     },
                     .keeps_input = keeps_for_slope});

constinit const OpDef silu_op = unary<functors::Silu>("silu", kFromInput<silu_gradient_op>);
constinit const OpDef silu_gradient_op =
    pair<functors::SiluGradient>("silu_gradient", kOfSlope<silu_gradient_op, silu_curve>);

constinit const OpDef gelu_op = unary<functors::Gelu>("gelu", kFromInput<gelu_gradient_op>);
constinit const OpDef gelu_gradient_op =
    pair<functors::GeluGradient>("gelu_gradient", kOfSlope<gelu_gradient_op, gelu_curve>);

constinit const OpDef gelu_tanh_op =
    unary<functors::GeluTanh>("gelu_tanh", kFromInput<gelu_tanh_gradient_op>);
constinit const OpDef gelu_tanh_gradient_op = pair<functors::GeluTanhGradient>(
    "gelu_tanh_gradient", kOfSlope<gelu_tanh_gradient_op, gelu_tanh_curve>);

constinit const OpDef erf_op =
    unary<functors::Erf>("erf", from_x([](Operand dy, Operand x) {
                           return dy * (2 * std::numbers::inv_sqrtpi) * exp(-square(x));
                         }));

}  // namespace ebb
