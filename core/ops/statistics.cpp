#include "ebb/core/ops/statistics.h"

#include <bit>
#include <cmath>
#include <limits>

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/in_float.h"
#include "ebb/core/kernels/statistics.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/order.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/reduce_rules.h"
#include "ebb/core/ops/scan.h"
#include "ebb/core/ops/shape.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;
using Kind = StatisticAttributes::Kind;
using detail::with_axes;

void infer_statistic(Inference& inference) {
  detail::require_arithmetic(inference);
  detail::output_reduced<StatisticAttributes>(inference, inference.inputs[0].dtype);
}

Tensor statistic(const OpDef& op, const Operand& x, const auto& options, Kind kind,
                 int correction = 0) {
  if (correction != 0 && correction != 1)
    detail::refuse(op.name, "takes a correction of 0 or 1, not " + std::to_string(correction),
                   x.site());
  return detail::apply_to(
      op, x,
      StatisticAttributes{.axes = detail::mask_of(op, detail::asked_axes(op, options, x), x),
                          .keep = options.keep,
                          .kind = kind,
                          .correction = static_cast<std::uint8_t>(correction)});
}

// For y >= 0: y, or 1 where it is 0. A divisor with which 0 stays 0.
Tensor or_one(const Tensor& y) { return y + (1 - sign(y)); }

double lowest_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::numeric_limits<double>::lowest();
    case DType::f16:
      return -65504;
    case DType::bf16:
      return -0x1.FEp127;
    default:
      return std::numeric_limits<float>::lowest();
  }
}

// Gradients of 16 bits are computed in f32: a mean or logarithm rounded to 16 bits is far from the
// elements that it is subtracted from.
Tensor widened(Tensor x) {
  if (is_half(x.dtype())) return cast(std::move(x), DType::f32);
  return x;
}

Tensor differences(const Tensor& x, const StatisticAttributes& how) {
  return x - mean(x, detail::kept(how.axes));
}
// dy repeated for each element, divided by the variance's divisor.
Tensor for_each_element(const Tensor& dy, const Tensor& x, const StatisticAttributes& how) {
  return detail::broadcast_like(
      dy, x, {.axes = how.axes, .keep = how.keep, .mean = 1, .correction = how.correction});
}

// For each element the product of the others over these axes. Neighbouring axes are merged by a
// view; others are moved together first.
Tensor products_of_others(const Tensor& x, std::uint32_t mask) {
  if (mask == 0) return ones_like(x);
  const int count = std::popcount(mask), first = std::countr_zero(mask);
  const std::uint32_t neighbours = (1u << count) - 1;
  if (mask >> first != neighbours) {
    Axes order;
    for (const bool moves : {false, true})
      for (int axis = 0; axis < x.rank(); ++axis)
        if (detail::reduces(mask, axis) == moves) order.push_back(axis);
    Axes back = order;
    for (std::size_t i = 0; i < order.size(); ++i)
      back[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
    return permute(products_of_others(permute(x, order), neighbours << (x.rank() - count)), back);
  }
  Tensor row = x;
  for (int i = 1; i < count; ++i) row = detail::merge_axes(row, first);
  Tensor others = detail::products_of_others(row, first);
  return count > 1 ? detail::reshape_like(std::move(others), x) : others;
}

constexpr OpDef statistic_op(const char* name, Tensors (*gradient)(Gradient), Keeps keeps) {
  return {.name = name,
          .infer = infer_statistic,
          .gradient = gradient,
          .keeps = keeps,
          .cpu = cpu::in_float<cpu::statistic, cpu::statistic_memory>,
          .cuda = {cuda::statistic, cuda::statistic_memory}};
}

}  // namespace

Tensor variance(const Operand& x, const VarianceOptions& options) {
  return statistic(variance_op, x, options, Kind::variance, options.correction);
}
Tensor standard_deviation(const Operand& x, const VarianceOptions& options) {
  return statistic(standard_deviation_op, x, options, Kind::standard_deviation, options.correction);
}
Tensor logsumexp(const Operand& x, const ReduceOptions& options) {
  return statistic(logsumexp_op, x, options, Kind::logsumexp);
}

Tensor prod(const Operand& x, const ReduceOptions& options) {
  return statistic(prod_op, x, options, Kind::product);
}

// The largest absolute value is the maximum's or the minimum's: no tensor of absolute values is
// made.
Tensor norm(const Operand& x, const NormOptions& options) {
  if (options.p == 1) return statistic(norm1_op, x, options, Kind::norm1);
  if (options.p == 2) return statistic(norm2_op, x, options, Kind::norm2);
  if (options.p != std::numeric_limits<double>::infinity())
    detail::refuse(norm2_op.name, "takes a p of 1, 2 or infinity", x.site());
  const detail::CalledScope called(norm2_op.name);
  const Tensor all = detail::tensor_of(norm2_op, x);
  if (!is_floating(all.dtype())) detail::fail(norm2_op, detail::kTakesFloating, x);
  const ReduceOptions over{options.axes, options.axis, options.keep};
  return maximum({max({all, x.site()}, over), x.site()}, -min({all, x.site()}, over));
}

// The gradient is computed in f64, for the reason cumprod has.
constinit const OpDef prod_op{
    .name = "prod",
    .infer = infer_statistic,
    .gradient = [](Gradient g) -> Tensors {
      const auto& how = g.attribute<StatisticAttributes>();
      const DType given = g.dy().dtype();
      Tensor others = products_of_others(cast(g.take_x(0), DType::f64), how.axes);
      return {cast(std::move(others) * with_axes(cast(g.take_dy(), DType::f64), how), given)};
    },
    .keeps = input(0),
    .cpu = cpu::in_float<cpu::prod, cpu::prod_memory>,
    .cuda = {cuda::statistic, cuda::statistic_memory}};

constinit const OpDef variance_op = statistic_op(
    "variance",
    [](Gradient g) -> Tensors {
      const auto& how = g.attribute<StatisticAttributes>();
      const DType given = g.dy().dtype();
      const Tensor x = widened(g.take_x(0)), dy = widened(g.take_dy());
      return {cast(differences(x, how) * for_each_element(dy * 2, x, how), given)};
    },
    input(0));

constinit const OpDef standard_deviation_op = statistic_op(
    "standard_deviation",
    [](Gradient g) -> Tensors {
      const auto& how = g.attribute<StatisticAttributes>();
      const DType given = g.dy().dtype();
      const Tensor x = widened(g.take_x(0)), y = widened(g.take_y()), dy = widened(g.take_dy());
      return {cast(
          differences(x, how) / with_axes(or_one(y), how) * for_each_element(dy * sign(y), x, how),
          given)};
    },
    input(0) | output(0));

constinit const OpDef norm1_op = statistic_op(
    "norm",
    [](Gradient g) -> Tensors {
      return {sign(g.take_x(0)) * with_axes(g.take_dy(), g.attribute<StatisticAttributes>())};
    },
    input(0));

constinit const OpDef norm2_op = statistic_op(
    "norm",
    [](Gradient g) -> Tensors {
      const auto& how = g.attribute<StatisticAttributes>();
      return {g.take_x(0) / with_axes(or_one(g.y()), how) * with_axes(g.take_dy(), how)};
    },
    input(0) | output(0));

// The gradient is the softmax of x, with 0 in a row that is all -infinity. For 16 bits it is
// divided by its sum, which is not 1 since y is rounded.
constinit const OpDef logsumexp_op = statistic_op(
    "logsumexp",
    [](Gradient g) -> Tensors {
      const auto& how = g.attribute<StatisticAttributes>();
      const DType given = g.dy().dtype();
      Tensor y = widened(maximum(g.take_y(), lowest_of(given)));
      Tensor p = exp(widened(g.take_x(0)) - with_axes(std::move(y), how));
      if (is_half(given)) p = p / or_one(sum(p, detail::kept(how.axes)));
      return {cast(std::move(p) * with_axes(widened(g.take_dy()), how), given)};
    },
    input(0) | output(0));

}  // namespace ebb
