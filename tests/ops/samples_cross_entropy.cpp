#include <algorithm>
#include <cmath>
#include <limits>

#include "ebb/core/kernels/cross_entropy.h"
#include "ebb/core/kernels/softmax.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/cross_entropy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/index.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

using Options = CrossEntropyAttributes;

// Options of a loss beside scores and labels. Weights and their total are constants, since no
// gradient flows to them.
struct How {
  const char* name;
  Shape rows = {kOpen};
  Values labels = Values::labels;  // any: probabilities
  bool weights = false;
  double smoothing = 0;
  std::optional<std::int64_t> ignored = {};
  LossReduction reduction = LossReduction::mean;

  Shape scores() const {
    Shape shape = rows;
    shape.push_back(5);
    return shape;
  }
  bool has_labels() const { return labels != Values::any; }
  std::vector<SampleInput> inputs() const {
    return {{scores()}, {has_labels() ? rows : scores(), labels}};
  }
  // Attributes of the operator. `has_total`: the total of the weights, which divides the loss, is
  // an input.
  Options attributes(bool has_total) const {
    return {.smoothing = smoothing,
            .ignored = ignored.value_or(0),
            .reduction = static_cast<Options::Reduction>(reduction),
            .has_ignored = ignored.has_value(),
            .has_weights = weights,
            .has_total = has_total};
  }
  bool has_total() const {
    return has_labels() && reduction == LossReduction::mean && (weights || ignored);
  }
};

// Class weights on the device of the scores, the same for any scores.
Tensor weights_of(const Tensor& scores) {
  const auto at = [any = sum(scores), dtype = scores.dtype()](int label) {
    return one_hot(cast(fill_like(any, label), DType::i32), 5, dtype);
  };
  return at(0) * 1.25 + at(2) * -0.5 + at(4) * 0.25 + 0.75;
}

// Applies `op` to `in`, followed by the class weights and the total where the attributes ask for
// them.
Tensors apply_to(const OpDef& op, const Tensors& in, const How& how, bool has_total) {
  Tensors inputs = in;
  const DType dtype = in[0].dtype();
  if (how.weights) inputs.push_back(weights_of(in[0]));
  if (has_total)
    inputs.push_back(fill_like(cast(sum(in[0]), dtype == DType::f64 ? dtype : DType::f32), 1.25));
  const InlineVector<Input, 5> all(inputs.begin(), inputs.end());
  return apply(op, {all.data(), all.size()}, how.attributes(has_total), {});
}

Sample forward(const How& how) {
  return sample_of(
      softmax_cross_entropy_op, how.name, how.inputs(),
      EBB_CALL(softmax_cross_entropy(in[0], in[1],
                                     {.weights = how.weights ? weights_of(in[0]) : Tensor(),
                                      .label_smoothing = how.smoothing,
                                      .ignored_label = how.ignored,
                                      .reduction = how.reduction})));
}

Sample backward(const How& how) {
  Sample sample = sample_of(
      softmax_cross_entropy_backward_op, how.name, how.inputs(), [how](const Tensors& in) {
        return apply_to(softmax_cross_entropy_backward_op, in, how, how.has_total());
      });
  sample.inputs.push_back({how.reduction == LossReduction::none ? how.rows : Shape{}});
  return sample;
}

Sample of_labels(const How& how) {
  return sample_of(
      label_weights_op, std::string("its labels, ") + how.name, how.inputs(),
      [how](const Tensors& in) { return apply_to(label_weights_op, in, how, false); }, kNoGradient);
}

// A row of scores, for which log(sum_j exp(x[j])) = largest + log(total).
struct Row {
  Row(const Array& x, std::int64_t first, std::int64_t classes, std::int64_t step = 1) {
    for (std::int64_t j = 0; j < classes; ++j) largest = std::max(largest, x[first + j * step]);
    for (std::int64_t j = 0; j < classes; ++j) total += std::exp(x[first + j * step] - largest);
  }
  double largest = -std::numeric_limits<double>::infinity();
  double total = 0;
};

// Evaluates f(row, element) for each element, with rows along the axis of the attributes.
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

Shape without_classes(const Shape& scores) {
  Shape rows;
  for (int axis = 0; axis + 1 < scores.rank(); ++axis) rows.push_back(scores[axis]);
  return rows;
}

// Targets of a row, and the divisor of the loss.
struct Targets {
  const Application& a;
  const Options options;
  const std::int64_t classes, rows;
  const std::size_t extra;  // index of the input with class weights

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

void cross_entropy_family(std::vector<Sample>& samples, References& references, DType) {
  using enum Values;
  using enum LossReduction;
  const How all[] = {
      {""},
      {"i64 labels", {kOpen}, long_labels},
      {"the sum over sequences, smoothed", {2, kOpen}, labels, false, 0.1, {}, sum},
      {"each row, weights", {kOpen}, labels, true, 0, {}, none},
      {"weights, smoothed", {kOpen}, long_labels, true, 0.2},
      {"without a label", {kOpen}, labels, false, 0, 2},
      {"weights, without a label, each row, smoothed", {3, kOpen}, labels, true, 0.3, 1, none},
      {"weights, without a label, smoothed", {kOpen}, labels, true, 0.3, 4},
      {"probabilities", {kOpen}, any},
      {"probabilities of sequences, weights, smoothed", {kOpen, 2}, any, true, 0.1},
      {"weights, without a label, the sum, smoothed", {kOpen}, labels, true, 0.3, 1, sum},
      {"probabilities, each row", {kOpen}, any, true, 0, {}, none},
      {"probabilities, weights, the sum, smoothed", {kOpen}, any, true, 0.3, {}, sum},
      {"probabilities, each row, smoothed", {kOpen}, any, false, 0.3, {}, none},
  };
  for (const How& how : all) {
    samples.push_back(forward(how));
    samples.push_back(backward(how));
    if (how.has_total()) samples.push_back(of_labels(how));
  }

  references.add(softmax_op, [](const Application& a) -> Arrays {
    return {along_axis(
        a, [](const Row& row, double x) { return std::exp(x - row.largest) / row.total; })};
  });
  references.add(log_softmax_op, [](const Application& a) -> Arrays {
    return {along_axis(
        a, [](const Row& row, double x) { return x - row.largest - std::log(row.total); })};
  });
  references.add(softmax_cross_entropy_op, cross_entropy);
  references.add(softmax_cross_entropy_backward_op, cross_entropy_backward);
  references.add(label_weights_op, label_weights);
  references.add(difference_op, [](const Application& a) -> Arrays {
    Array out = a[0];
    for (std::int64_t i = 0; i < out.elements(); ++i) out[i] -= a[1][i];
    return {out};
  });
}

}  // namespace ebb::tests
