#include <algorithm>
#include <cmath>
#include <limits>

#include "ebb/core/kernels/cross_entropy.h"
#include "ebb/core/kernels/softmax.h"
#include "ebb/core/ops/loss.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

// A row of scores: log(sum_j exp(x[j])) is largest + log(total).
struct Row {
  Row(const Array& x, std::int64_t first, std::int64_t classes, std::int64_t step = 1) {
    for (std::int64_t j = 0; j < classes; ++j) largest = std::max(largest, x[first + j * step]);
    for (std::int64_t j = 0; j < classes; ++j) total += std::exp(x[first + j * step] - largest);
  }
  double largest = -std::numeric_limits<double>::infinity();
  double total = 0;
};

// f(row, element) of each element, rows being along the axis of the attributes.
template <class F>
Array along_axis(const Application& a, const F& f) {
  const Array& x = a[0];
  const int axis = x.shape.rank() - 1 - static_cast<int>(a.attribute<SoftmaxAttributes>().behind);
  std::int64_t step = 1;
  for (int i = axis + 1; i < x.shape.rank(); ++i) step *= x.shape[i];
  Array y(x.shape);
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const std::int64_t j = i / step % x.shape[axis];
    y[i] = f(Row(x, i - j * step, x.shape[axis], step), x[i]);
  }
  return y;
}

Array softmax_of(const Array& x) {
  Array y(x.shape);
  const std::int64_t classes = x.shape[-1];
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const Row row(x, i - i % classes, classes);
    y[i] = std::exp(x[i] - row.largest) / row.total;
  }
  return y;
}

using Options = CrossEntropyAttributes;

Shape without_classes(const Shape& scores) {
  Shape rows;
  for (int axis = 0; axis + 1 < scores.rank(); ++axis) rows.push_back(scores[axis]);
  return rows;
}

// The targets of a row, and what divides the loss.
struct Targets {
  const Application& a;
  const Options options;
  const std::int64_t classes, rows;
  const std::size_t extra;  // the input of weights

  Targets(const Application& application, std::size_t weights)
      : a(application),
        options(a.attribute<Options>()),
        classes(a[0].shape[-1]),
        rows(a[0].elements() / classes),
        extra(weights) {}
  double weight(std::int64_t c) const { return options.has_weights ? a[extra][c] : 1; }
  bool has_labels() const { return a[1].elements() == rows && !(a[1].shape == a[0].shape); }
  double target(std::int64_t row, std::int64_t c) const {
    double p = 0;
    if (has_labels()) {
      if (options.ignores(static_cast<std::int64_t>(a[1][row]))) return 0;
      p = a[1][row] == static_cast<double>(c) ? 1 : 0;
    } else {
      p = a[1][row * classes + c];
    }
    return weight(c) *
           (p * (1 - options.smoothing) + options.smoothing / static_cast<double>(classes));
  }
  double divisor() const {
    if (options.has_total) return a[options.has_weights ? extra + 1 : extra][0];
    return options.reduction == Options::mean ? static_cast<double>(rows) : 1;
  }
};

Arrays cross_entropy(const Application& a) {
  const Targets targets(a, 2);
  const bool reduced = targets.options.reduction != Options::none;
  Array loss(reduced ? Shape() : without_classes(a[0].shape));
  for (std::int64_t i = 0; i < targets.rows; ++i) {
    const Row row(a[0], i * targets.classes, targets.classes);
    for (std::int64_t c = 0; c < targets.classes; ++c)
      if (const double t = targets.target(i, c); t != 0)
        loss[reduced ? 0 : i] +=
            t * (std::log(row.total) + (row.largest - a[0][i * targets.classes + c]));
  }
  if (reduced) loss[0] /= targets.divisor();
  return {loss};
}

Arrays cross_entropy_backward(const Application& a) {
  const Targets targets(a, 3);
  Array out = softmax_of(a[0]);
  for (std::int64_t i = 0; i < targets.rows; ++i) {
    double sum = 0;
    for (std::int64_t c = 0; c < targets.classes; ++c) sum += targets.target(i, c);
    const bool reduced = targets.options.reduction != Options::none;
    const double share = reduced ? a[2][0] / targets.divisor() : a[2][i];
    for (std::int64_t c = 0; c < targets.classes; ++c) {
      double& y = out[i * targets.classes + c];
      y = share * (y * sum - targets.target(i, c));
    }
  }
  return {out};
}

Arrays label_weights(const Application& a) {
  const Targets targets(a, 2);
  Array out(a[1].shape);
  for (std::int64_t i = 0; i < targets.rows; ++i) {
    const auto label = static_cast<std::int64_t>(a[1][i]);
    out[i] = targets.options.ignores(label) ? 0 : targets.weight(label);
  }
  return {out};
}

}  // namespace

void add_loss_references(std::vector<Reference>& references) {
  references.push_back({&softmax_op, [](const Application& a) -> Arrays {
                          return {along_axis(a, [](const Row& row, double x) {
                            return std::exp(x - row.largest) / row.total;
                          })};
                        }});
  references.push_back({&log_softmax_op, [](const Application& a) -> Arrays {
                          return {along_axis(a, [](const Row& row, double x) {
                            return x - row.largest - std::log(row.total);
                          })};
                        }});
  references.push_back({&softmax_cross_entropy_op, cross_entropy});
  references.push_back({&softmax_cross_entropy_backward_op, cross_entropy_backward});
  references.push_back({&label_weights_op, label_weights});
  references.push_back({&difference_op, [](const Application& a) -> Arrays {
                          Array out = a[0];
                          for (std::int64_t i = 0; i < out.elements(); ++i) out[i] -= a[1][i];
                          return {out};
                        }});
}

}  // namespace ebb::tests
