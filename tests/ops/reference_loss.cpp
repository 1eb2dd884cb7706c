#include <algorithm>
#include <cmath>
#include <limits>

#include "ebb/core/ops/loss.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

// A row of scores: log(sum_j exp(x[j])) is largest + log(total).
struct Row {
  Row(const Array& x, std::int64_t first, std::int64_t classes) {
    for (std::int64_t j = 0; j < classes; ++j) largest = std::max(largest, x[first + j]);
    for (std::int64_t j = 0; j < classes; ++j) total += std::exp(x[first + j] - largest);
  }
  double largest = -std::numeric_limits<double>::infinity();
  double total = 0;
};

Array softmax_of(const Array& x) {
  Array y(x.shape);
  const std::int64_t classes = x.shape[-1];
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const Row row(x, i - i % classes, classes);
    y[i] = std::exp(x[i] - row.largest) / row.total;
  }
  return y;
}

Arrays cross_entropy(const Application& a) {
  const std::int64_t n = a[0].shape[0], classes = a[0].shape[1];
  Array loss{Shape{}};
  for (std::int64_t i = 0; i < n; ++i) {
    const Row row(a[0], i * classes, classes);
    const auto label = static_cast<std::int64_t>(a[1][i]);
    loss[0] += std::log(row.total) + (row.largest - a[0][i * classes + label]);
  }
  loss[0] /= static_cast<double>(n);
  return {loss};
}

Arrays cross_entropy_backward(const Application& a) {
  const std::int64_t n = a[0].shape[0], classes = a[0].shape[1];
  Array out = softmax_of(a[0]);
  for (std::int64_t i = 0; i < n; ++i) out[i * classes + static_cast<std::int64_t>(a[1][i])] -= 1;
  for (double& value : out.values) value *= a[2][0] / static_cast<double>(n);
  return {out};
}

}  // namespace

void add_loss_references(std::vector<Reference>& references) {
  references.push_back(
      {&softmax_op, [](const Application& a) -> Arrays { return {softmax_of(a[0])}; }});
  references.push_back({&softmax_cross_entropy_op, cross_entropy});
  references.push_back({&softmax_cross_entropy_backward_op, cross_entropy_backward});
  references.push_back({&difference_op, [](const Application& a) -> Arrays {
                          Array out = a[0];
                          for (std::int64_t i = 0; i < out.elements(); ++i) out[i] -= a[1][i];
                          return {out};
                        }});
}

}  // namespace ebb::tests
