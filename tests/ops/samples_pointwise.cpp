// Operators that work element by element. One sample serves every test: gradients, both modes, open
// batches, values, extremes, accuracy.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "ebb/core/kernels/functors/families.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/pointwise_rules.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

using Unary = Tensor (*)(const Operand&);

// Sample of y = exact(x) with an error of at most `ulps`.
Sample unary(const OpDef& op, Unary call, double ulps, Values values,
             long double (*exact)(long double)) {
  Sample sample = of_any_shape(op, "", {{{kOpen, 3}, values}}, EBB_CALL(call(in[0])));
  sample.reference = [exact](const Application& a) -> Arrays {
    return {map(a[0], [exact](double x) { return static_cast<double>(exact(x)); })};
  };
  sample.exact = exact;
  sample.ulps = ulps;
  return sample;
}

// Replaces the reference of `sample` by f with parameters; P is the type of the operator's
// attributes.
template <class P>
Sample with_parameters(Sample sample, double (*f)(double, const P&)) {
  sample.reference = [f](const Application& a) -> Arrays {
    return {map(a[0], [&](double x) { return f(x, a.attribute<P>()); })};
  };
  return sample;
}

// Sample of f(dy, y), the gradient of a function from its result. `values` is the kind of y.
Sample pair(const OpDef& op, Binary call, Values values, double (*f)(double, double)) {
  Sample sample = of_two(op, "one shape", call, f, {{kOpen, 3}}, {{kOpen, 3}, values});
  sample.any_shape = false;
  return sample;
}

// Samples of f(a, b) for two tensors that broadcast, and for a tensor and a number on either side.
// `left` is the kind of a, `values` the kind of b.
std::vector<Sample> binary(const BinaryOpDef& op, Binary call, Values values,
                           double (*f)(double, double), double number = 3,
                           Values left = Values::any) {
  std::vector<Sample> samples;
  const auto add = [&](const char* how, const Shape& a, const Shape& b) {
    samples.push_back(of_two(op.tensors, how, call, f, {a, left}, {b, values}));
  };
  add("one shape", {kOpen, 3}, {kOpen, 3});
  add("a row on the right", {kOpen, 3}, {3});
  add("a column on the left", {3, 1}, {kOpen, 3, 4});
  add("both broadcast", {kOpen, 1, 4}, {3, 1});
  add("a scalar on the left", {}, {kOpen, 2});
  samples.push_back(beside(op, "a number", call, f, {{kOpen, 3}, left}, number, false));
  samples.push_back(beside(op, "a number", call, f, {{kOpen, 3}, values}, number, true));
  return samples;
}

// Adds samples of integers for the operators that take them; the references stay the same.
void add_integer_samples(std::vector<Sample>& samples) {
  const std::vector<const OpDef*> of_one = {&negate_op, &abs_op, &sign_op};
  const std::vector<const BinaryOpDef*> of_two = {&add_op,         &subtract_op, &multiply_op,
                                                  &maximum_op,     &minimum_op,  &remainder_op,
                                                  &floor_divide_op};
  std::vector<Sample> more;
  for (Sample& sample : samples) {
    bool beside = std::find(of_one.begin(), of_one.end(), sample.op) != of_one.end();
    bool two = false;
    for (const BinaryOpDef* ops : of_two) {
      beside = beside || sample.op == &ops->number_right || sample.op == &ops->number_left;
      two = two || sample.op == &ops->tensors;
    }
    if (beside) sample.any_dtype = true;  // takes u8 too, the dtype that refusals.cpp tries
    if (!beside && !two) continue;
    const bool is_extreme = std::string(sample.op->name).ends_with("imum");
    if (beside && is_extreme) continue;  // their number is 0.5
    for (const DType dtype : {DType::i32, DType::i64}) {
      Sample whole = sample;
      whole.name += std::string(", ") + name(dtype);
      for (SampleInput& input : whole.inputs) input.dtype = dtype;
      // A number on the left is divided by the only input, which must not be 0.
      whole.inputs.back().values =
          two || sample.op == &remainder_op.number_left || sample.op == &floor_divide_op.number_left
              ? Values::count
              : Values::apart_from_zero;
      if (two) whole.inputs[0].values = Values::apart_from_zero;
      whole.order = 0;
      whole.any_dtype = beside;
      whole.exact = nullptr;
      whole.of_two = nullptr;
      more.push_back(whole);
    }
  }
  samples.insert(samples.end(), more.begin(), more.end());
}

}  // namespace

void pointwise_family(std::vector<Sample>& samples, References&, DType) {
  using enum Values;
  using Real = long double;
  const auto add = [&](const Sample& sample) { samples.push_back(sample); };
  const auto add_all = [&](const std::vector<Sample>& more) {
    samples.insert(samples.end(), more.begin(), more.end());
  };

  // arithmetic
  add_all(binary(add_op, ebb::add, any, [](double a, double b) { return a + b; }));
  add_all(binary(subtract_op, subtract, any, [](double a, double b) { return a - b; }));
  add_all(binary(multiply_op, multiply, any, [](double a, double b) { return a * b; }));
  add_all(binary(divide_op, divide, apart_from_zero, [](double a, double b) { return a / b; }));
  add(unary(negate_op, negate, 0, any, [](Real x) { return -x; }));
  add(unary(square_op, square, 0.5, any, [](Real x) { return x * x; }));
  add(unary(sqrt_op, sqrt, 0.5, positive, [](Real x) { return std::sqrt(x); }));

  // elementary
  add(unary(exp_op, exp, 1.5, any, [](Real x) { return std::exp(x); }));
  add(unary(log_op, log, 1.5, positive, [](Real x) { return std::log(x); }));
  add(unary(tanh_op, tanh, 3, any, [](Real x) { return std::tanh(x); }));

  // rounding
  add(unary(abs_op, abs, 0, apart_from_zero, [](Real x) { return std::abs(x); }));
  // Step functions are constant between jumps, so their gradient has no history.
  const auto add_step = [&](Sample sample) {
    sample.order = 1;
    add(sample);
  };
  add_step(unary(sign_op, sign, 0, apart_from_zero, [](Real x) {
    return x > 0 ? 1 : x < 0 ? -1 : x;
  }));
  add_step(unary(floor_op, floor, 0, any, [](Real x) { return std::floor(x); }));
  add_step(unary(ceil_op, ceil, 0, any, [](Real x) { return std::ceil(x); }));
  add_step(unary(round_op, round, 0, any, [](Real x) { return std::nearbyint(x); }));
  add_step(unary(trunc_op, trunc, 0, any, [](Real x) { return std::trunc(x); }));
  // Starts from the nearest quotient; the operator starts from the quotient rounded towards zero.
  add_all(binary(remainder_op, remainder, apart_from_zero, [](double a, double b) {
    const double rest = std::remainder(a, b);
    return rest != 0 && std::signbit(rest) != std::signbit(b) ? rest + b : rest;
  }));

  // Floor of a / b: the nearest quotient, less one if that is above. This is exact, while a / b
  // itself may round up to an integer.
  const auto quotient = [](double a, double b) {
    if (b == 0 || std::isnan(a) || std::isnan(b)) return a / b;
    if (std::isinf(a)) return std::nan("");
    if (std::isinf(b)) return a != 0 && (a < 0) != (b < 0) ? -1.0 : 0.0;
    const double rest = std::remainder(a, b);
    const double nearest = std::nearbyint((a - rest) / b);
    return rest != 0 && std::signbit(rest) != std::signbit(b) ? nearest - 1 : nearest;
  };
  for (Sample& sample : binary(floor_divide_op, floor_divide, apart_from_zero, quotient))
    add_step(sample);

  // extremes
  add_all(binary(
      maximum_op, maximum, any,
      [](double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b); },
      0.5));
  add_all(binary(
      minimum_op, minimum, any,
      [](double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::min(a, b); },
      0.5));
  for (Sample& sample : binary(share_of_maximum_op, share_of_maximum, any, [](double a, double b) {
         return a < b ? 0 : a == b ? 0.5 : 1;
       }))
    add_step(sample);
  using functors::Bounds;
  add(with_parameters<Bounds>(
      unary(
          clamp_op, [](const Operand& x) { return clamp(x, 0.25, 1.25); }, 0, any,
          [](Real x) { return std::min<Real>(std::max<Real>(x, 0.25), 1.25); }),
      [](double x, const Bounds& bounds) {
        return std::min(std::max(x, bounds.low), bounds.high);
      }));
  add(pair(
      clamp_gradient_op,
      [](const Operand& dy, const Operand& x) {
        return detail::apply_to(clamp_gradient_op, {dy, x}, Bounds{0.25, 1.25});
      },
      any, [](double dy, double x) { return 0.25 <= x && x <= 1.25 ? dy : 0; }));

  // powers
  add(unary(expm1_op, expm1, 2, any, [](Real x) { return std::expm1(x); }));
  add(unary(log1p_op, log1p, 2, positive, [](Real x) { return std::log1p(x); }));
  add(unary(log2_op, log2, 2, positive, [](Real x) { return std::log2(x); }));
  add(unary(log10_op, log10, 3, positive, [](Real x) { return std::log10(x); }));
  add(unary(exp2_op, exp2, 3, any, [](Real x) { return std::exp2(x); }));
  add(unary(rsqrt_op, rsqrt, 2, positive, [](Real x) { return 1 / std::sqrt(x); }));
  add_all(binary(
      pow_op, pow, any, [](double a, double b) { return std::pow(a, b); }, 2.5, positive));

  // trigonometry
  add(unary(sin_op, sin, 3, any, [](Real x) { return std::sin(x); }));
  add(unary(cos_op, cos, 3, any, [](Real x) { return std::cos(x); }));
  add(unary(tan_op, tan, 5, within_one, [](Real x) { return std::tan(x); }));
  add(unary(asin_op, asin, 3, within_one, [](Real x) { return std::asin(x); }));
  add(unary(acos_op, acos, 3, within_one, [](Real x) { return std::acos(x); }));
  add(unary(atan_op, atan, 3, any, [](Real x) { return std::atan(x); }));
  add(unary(sinh_op, sinh, 3, any, [](Real x) { return std::sinh(x); }));
  add(unary(cosh_op, cosh, 3, any, [](Real x) { return std::cosh(x); }));
  add(unary(asinh_op, asinh, 3, any, [](Real x) { return std::asinh(x); }));
  add(unary(acosh_op, acosh, 3, above_one, [](Real x) { return std::acosh(x); }));
  add(unary(atanh_op, atanh, 3, within_one, [](Real x) { return std::atanh(x); }));
  add_all(binary(
      atan2_op, atan2, any, [](double a, double b) { return std::atan2(a, b); }, 0.5,
      apart_from_zero));

  // activations
  add(unary(sigmoid_op, sigmoid, 3, any, [](Real x) { return 1 / (1 + std::exp(-x)); }));
  add(unary(softplus_op, softplus, 3, any,
            [](Real x) { return std::max<Real>(x, 0) + std::log1p(std::exp(-std::abs(x))); }));
  add(unary(relu_op, relu, 0, apart_from_zero, [](Real x) { return x < 0 ? 0 : x; }));
  add(pair(relu_gradient_op, relu_gradient, apart_from_zero,
           [](double dy, double y) { return y > 0 ? dy : 0; }));
  using functors::Slope, functors::Alpha;
  add(with_parameters<Slope>(
      unary(
          leaky_relu_op, [](const Operand& x) { return leaky_relu(x, 0.25); }, 0, apart_from_zero,
          [](Real x) { return x < 0 ? x / 4 : x; }),
      [](double x, const Slope& s) { return x < 0 ? x * s.slope : x; }));
  add(pair(
      leaky_relu_gradient_op,
      [](const Operand& dy, const Operand& y) {
        return detail::apply_to(leaky_relu_gradient_op, {dy, y}, Slope{0.25});
      },
      apart_from_zero, [](double dy, double y) { return y > 0 ? dy : dy / 4; }));
  add(with_parameters<Alpha>(
      unary(
          elu_op, [](const Operand& x) { return elu(x, 1.5); }, 2, apart_from_zero,
          [](Real x) { return x < 0 ? 1.5 * std::expm1(x) : x; }),
      [](double x, const Alpha& a) { return x < 0 ? a.alpha * std::expm1(x) : x; }));
  add(pair(
      elu_gradient_op,
      [](const Operand& dy, const Operand& y) {
        return detail::apply_to(elu_gradient_op, {dy, y}, Alpha{1.5});
      },
      apart_from_zero, [](double dy, double y) { return y > 0 ? dy : dy * (y + 1.5); }));
  // Not tried at extremes: where dy is infinite and the slope almost 0, rounding decides.
  const auto add_slope = [&](Sample sample) {
    sample.of_two = nullptr;
    add(sample);
  };
  add(unary(silu_op, silu, 5, any,
            [](Real x) { return std::isinf(x) && x < 0 ? 0 : x / (1 + std::exp(-x)); }));
  add_slope(pair(silu_gradient_op, silu_gradient, any, [](double dy, double x) {
    const Real s = 1 / (1 + std::exp(-static_cast<Real>(x)));
    return static_cast<double>(
        dy * (std::isinf(x) ? s : s + x * s / (1 + std::exp(static_cast<Real>(x)))));
  }));
  add(unary(
      gelu_op, [](const Operand& x) { return gelu(x); }, 6, any,
      [](Real x) {
        return std::isinf(x) && x < 0 ? 0 : x / 2 * std::erfc(-x / std::numbers::sqrt2_v<Real>);
      }));
  add_slope(pair(
      gelu_gradient_op,
      [](const Operand& dy, const Operand& x) {
        return detail::apply_to(gelu_gradient_op, {dy, x});
      },
      any,
      [](double dy, double x) {
        const double below = std::erfc(-x / std::numbers::sqrt2) / 2,
                     bell = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
        return dy * (std::isinf(x) ? below : below + x * bell);
      }));
  // Its error is not bounded in ulps; tests/ops/values.cpp checks it.
  Sample approximate = unary(
      gelu_tanh_op, [](const Operand& x) { return gelu(x, {.approximate = true}); }, 0, any,
      [](Real x) {
        return x / 2 *
               (1 + std::tanh(std::sqrt(2 / std::numbers::pi_v<Real>) *
                              (x + Real(0.044715) * x * x * x)));
      });
  approximate.exact = nullptr;
  add(approximate);
  Sample approximate_gradient = pair(
      gelu_tanh_gradient_op,
      [](const Operand& dy, const Operand& x) {
        return detail::apply_to(gelu_tanh_gradient_op, {dy, x});
      },
      any,
      [](double dy, double x) {
        const double factor = std::sqrt(2 / std::numbers::pi),
                     t = std::tanh(factor * (x + 0.044715 * x * x * x));
        return dy * ((1 + t) / 2 + x / 2 * (1 - t * t) * factor * (1 + 3 * 0.044715 * x * x));
      });
  add_slope(approximate_gradient);
  add(unary(erf_op, erf, 3, any, [](Real x) { return std::erf(x); }));
  add_integer_samples(samples);
}

}  // namespace ebb::tests
