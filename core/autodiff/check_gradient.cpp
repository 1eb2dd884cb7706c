#include "ebb/core/autodiff/check_gradient.h"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/base/formatted.h"
#include "ebb/core/kernels/philox.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/random/random.h"

namespace ebb {
namespace {

using Function = std::function<Tensor(const Tensors&)>;
using Values = std::vector<double>;

// Sums with weights in [0.5, 1.5), different for every element, so that no error cancels in the
// sum.
Tensor weighted_sum(const Tensor& y, std::uint64_t key) {
  Values weights(static_cast<std::size_t>(y.elements()));
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = 0.5 + static_cast<double>(unit_interval(Philox::word(key, 0, i)));
  return sum(y * Tensor::from(weights, y.shape()));
}

// A direction with components of either sign and absolute values in [0.5, 1.5).
Values random_direction(std::size_t elements, int n) {
  Values direction(elements);
  for (std::size_t j = 0; j < elements; ++j) {
    const std::uint32_t word = Philox::word(3, static_cast<std::uint64_t>(n), j);
    const double size = 0.5 + static_cast<double>(unit_interval(word));
    direction[j] = (word & 1) != 0 ? size : -size;
  }
  return direction;
}

Tensors leaves(const std::vector<Values>& values, const Tensors& like) {
  Tensors result;
  for (std::size_t i = 0; i < values.size(); ++i)
    result.push_back(Tensor::from(values[i], like[i].shape()).with_grad());
  return result;
}

void compare(GradientCheck& check, double computed, double numeric, double tolerance,
             const std::string& where) {
  const double scale = std::max({1.0, std::abs(computed), std::abs(numeric)});
  const double difference = std::abs(computed - numeric) / scale;
  if (difference <= check.worst || std::isnan(check.worst)) return;  // the first NaN is reported
  check.worst = difference;
  if (difference <= tolerance) return;
  check.agrees = false;
  check.report = where + ": computed " + detail::formatted("%.12g", computed) + ", numeric " +
                 detail::formatted("%.12g", numeric);
}

GradientCheck check_first_order(const Function& loss, const Tensors& inputs,
                                const GradientCheckOptions& options) {
  std::vector<Values> values;
  for (const Tensor& input : inputs) values.push_back(input.to_vector<double>());
  const Tensors at = leaves(values, inputs);
  // A loss that depends on no input (the gradient of a linear function) has no history.
  const Tensor value = loss(at);
  const Tensors computed = value.requires_grad() ? gradients(value, at) : Tensors();
  GradientCheck check;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Values gradient =
        computed.empty() ? Values(values[i].size()) : computed[i].to_vector<double>();
    const Values x = values[i];
    const auto value_at = [&](const Values& shifted) {
      values[i] = shifted;
      return loss(leaves(values, inputs)).item<double>();
    };
    // Compares the derivative along a direction, whose components are numbers of steps.
    const auto compare_along = [&](const Values& direction, const std::string& where) {
      Values above = x, below = x;
      double change = 0, length = 0;
      for (std::size_t j = 0; j < x.size(); ++j) {
        const double step = options.step * std::max(1.0, std::abs(x[j])) * direction[j];
        above[j] += step;
        below[j] -= step;
        change += gradient[j] * (above[j] - below[j]);
        length = std::max(length, std::abs(above[j] - below[j]));
      }
      if (x.empty()) return;
      if (length == 0) {  // a NaN, for one
        check.agrees = false;
        check.report = "input " + std::to_string(i) + ", " + where + ": a step moves nothing";
        return;
      }
      const double numeric = (value_at(above) - value_at(below)) / length;
      compare(check, change / length, numeric, options.tolerance,
              "input " + std::to_string(i) + ", " + where);
    };
    for (int n = 0; n < options.directions; ++n)
      compare_along(random_direction(x.size(), n), "direction " + std::to_string(n));
    if (options.directions == 0) {
      Values direction(x.size());
      for (std::size_t j = 0; j < x.size(); ++j) {
        direction[j] = 1;
        compare_along(direction, "element " + std::to_string(j));
        direction[j] = 0;
      }
    }
    values[i] = x;
  }
  return check;
}

}  // namespace

GradientCheck check_gradient(const Function& function, const Tensors& inputs,
                             const GradientCheckOptions& options, CallSite site) {
  const detail::CallScope at(site);
  const auto require = [&](bool condition, const std::string& text) {
    if (!condition) detail::refuse("check_gradient", text);
  };
  for (const Tensor& input : inputs)
    require(input.dtype() == DType::f64, "takes f64 inputs, not " + input.to_string());
  require(options.step > 0 && std::isfinite(options.step), "takes a step above 0");
  require(options.tolerance >= 0 && std::isfinite(options.tolerance),
          "takes a tolerance from 0 on");
  require(options.order == 1 || options.order == 2, "takes an order of 1 or 2");
  require(options.directions >= 0, "takes a number of directions from 0 on");
  const Function loss = [&](const Tensors& x) { return weighted_sum(function(x), 1); };
  GradientCheck first = check_first_order(loss, inputs, options);
  if (options.order < 2 || !first) return first;
  // The weighted sum of the loss's gradients is a function again.
  const Function gradient_sum = [&](const Tensors& x) {
    const Tensors all = gradients(loss(x), x, {.create_graph = true});
    Tensor total = weighted_sum(all[0], 2);
    for (std::size_t i = 1; i < all.size(); ++i) total = total + weighted_sum(all[i], 2 + i);
    return total;
  };
  GradientCheck second = check_first_order(gradient_sum, inputs, options);
  if (!second) second.report = "second order, " + second.report;
  if (second.worst < first.worst) second.worst = first.worst;  // NaN stays
  return second;
}

std::ostream& operator<<(std::ostream& out, const GradientCheck& check) {
  const std::string worst = detail::formatted("%.2g", check.worst);
  if (check) return out << "agrees to " << worst;
  return out << "differs by " << worst << ", " << check.report;
}

}  // namespace ebb
