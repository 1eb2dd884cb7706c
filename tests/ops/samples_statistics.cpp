#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "ebb/core/kernels/statistics.h"
#include "ebb/core/ops/statistics.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

double value_of(const std::vector<double>& x, const StatisticAttributes& how) {
  const auto sum = [&](const auto& term) {
    long double total = 0;
    for (const double value : x) total += term(value);
    return static_cast<double>(total);
  };
  const auto n = static_cast<double>(x.size());
  switch (how.kind) {
    case StatisticAttributes::product: {
      double product = 1;
      for (const double value : x) product *= value;
      return product;
    }
    case StatisticAttributes::norm1:
      return sum([](double value) { return std::abs(value); });
    case StatisticAttributes::norm2:
      return std::sqrt(sum([](double value) { return value * value; }));
    case StatisticAttributes::logsumexp: {
      double largest = -std::numeric_limits<double>::infinity();
      for (const double value : x) largest = std::max(largest, value);
      return std::log(sum([=](double value) { return std::exp(value - largest); })) + largest;
    }
    default:
      break;
  }
  long double mean = 0;
  for (const double value : x) mean += value / n;
  const double variance = sum([&](double value) -> long double {
    return (value - mean) * (value - mean) / (n - how.correction);
  });
  return how.kind == StatisticAttributes::variance ? variance : std::sqrt(variance);
}

Arrays statistic(const Application& a) {
  const auto& how = a.attribute<StatisticAttributes>();
  Array out(a.outputs[0].shape);
  std::vector<std::vector<double>> terms(out.values.size());
  std::int64_t next = 0;
  for_each_index(a[0].shape, [&](const Index& index) {
    const std::int64_t to = position(out.shape, without_axes(index, how.axes, how.keep));
    terms[static_cast<std::size_t>(to)].push_back(a[0][next++]);
  });
  for (std::size_t i = 0; i < terms.size(); ++i) out.values[i] = value_of(terms[i], how);
  return {out};
}

}  // namespace

// A statistic of x over axes.
#define EBB_OVER(...) [](const Tensor& x, const Axes& axes, bool keep) { return __VA_ARGS__; }

void statistic_family(std::vector<Sample>& samples, References& references, DType) {
  using Call = std::function<Tensor(const Tensor&, const Axes&, bool)>;
  const struct {
    const OpDef& op;
    std::string how;
    Call call;
    Values values = Values::any;
  } kinds[] = {
      {variance_op, "", EBB_OVER(variance(x, axes, keep))},
      {variance_op, "of a sample, ",
       EBB_OVER(variance(x, {.axes = axes, .keep = keep, .correction = 1}))},
      {standard_deviation_op, "", EBB_OVER(standard_deviation(x, axes, keep))},
      {norm1_op, "of sizes, ", EBB_OVER(norm(x, {.p = 1, .axes = axes, .keep = keep})),
       Values::apart_from_zero},
      {norm2_op, "", EBB_OVER(norm(x, {.axes = axes, .keep = keep}))},
      {logsumexp_op, "", EBB_OVER(logsumexp(x, axes, keep))},
      {prod_op, "", EBB_OVER(prod(x, axes, keep)), Values::apart_from_zero},
  };
  for (const auto& kind : kinds) {
    const auto add = [&](const char* how, const Shape& shape, const Axes& axes, bool keep) {
      samples.push_back(of_any_shape(kind.op, kind.how + how, {{shape, kind.values}},
                                     [call = kind.call, axes, keep](const Tensors& in) -> Tensors {
                                       return {call(in[0], axes, keep)};
                                     }));
    };
    add("all", {4, 3}, {}, false);
    add("rows", {kOpen, 7}, {-1}, false);
    add("the first axis, kept", {5, kOpen, 2}, {0}, true);
    add("outer and inner axes", {2, kOpen, 3, 2}, {0, 2}, false);
    if (&kind.op != &variance_op && &kind.op != &standard_deviation_op)  // NaN for an empty batch
      add("an open axis", {kOpen, 3}, {0}, false);
  }

  for (const OpDef* op :
       {&variance_op, &standard_deviation_op, &norm1_op, &norm2_op, &logsumexp_op, &prod_op})
    references.add(*op, statistic);
}

}  // namespace ebb::tests
