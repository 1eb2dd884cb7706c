#include <algorithm>
#include <cmath>
#include <limits>

#include "ebb/core/kernels/statistics.h"
#include "ebb/core/ops/statistics.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

double value_of(const std::vector<double>& x, const StatisticAttributes& how) {
  if (how.kind == StatisticAttributes::product) {
    double product = 1;
    for (const double value : x) product *= value;
    return product;
  }
  const auto n = static_cast<double>(x.size());
  long double total = 0, mean = 0;
  double largest = -std::numeric_limits<double>::infinity();
  for (const double value : x) {
    mean += value / n;
    largest = std::max(largest, value);
  }
  for (const double value : x) {
    const long double difference = value - mean;
    switch (how.kind) {
      case StatisticAttributes::norm1:
        total += std::abs(value);
        break;
      case StatisticAttributes::norm2:
        total += value * value;
        break;
      case StatisticAttributes::logsumexp:
        total += std::exp(value - largest);
        break;
      default:
        total += difference * difference / (n - how.correction);
    }
  }
  const auto sum = static_cast<double>(total);
  switch (how.kind) {
    case StatisticAttributes::norm1:
      return sum;
    case StatisticAttributes::norm2:
      return std::sqrt(sum);
    case StatisticAttributes::logsumexp:
      return std::log(sum) + largest;
    default:
      return how.kind == StatisticAttributes::variance ? sum : std::sqrt(sum);
  }
}

Arrays statistic(const Application& a) {
  const auto& how = a.attribute<StatisticAttributes>();
  Array out(a.outputs[0].shape);
  std::vector<std::vector<double>> terms(out.values.size());
  std::int64_t next = 0;
  for_each_index(a[0].shape, [&](const Index& index) {
    Index left;
    for (std::size_t axis = 0; axis < index.size(); ++axis) {
      if ((how.axes >> axis & 1) == 0)
        left.push_back(index[axis]);
      else if (how.keep)
        left.push_back(0);
    }
    terms[static_cast<std::size_t>(position(out.shape, left))].push_back(a[0][next++]);
  });
  for (std::size_t i = 0; i < terms.size(); ++i) out.values[i] = value_of(terms[i], how);
  return {out};
}

}  // namespace

void add_statistic_references(std::vector<Reference>& references) {
  for (const OpDef* op :
       {&variance_op, &standard_deviation_op, &norm1_op, &norm2_op, &logsumexp_op, &prod_op})
    references.push_back({op, statistic});
}

}  // namespace ebb::tests
