#include "ebb/core/ops/cross_entropy.h"

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/cross_entropy.h"
#include "ebb/core/kernels/in_float.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/ops/softmax.h"
#include "ebb/core/tensor/index_check.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;
using Options = CrossEntropyAttributes;
using Inputs5 = InlineVector<Input, 5>;

constexpr std::size_t kForwardWeights = 2, kBackwardWeights = 3;

bool is_label(DType dtype) { return dtype == DType::i32 || dtype == DType::i64; }
DType dtype_of_total(DType scores) { return scores == DType::f64 ? DType::f64 : DType::f32; }

// Checks scores, labels and, from input `weights` on, the optional inputs that the attributes name.
// Returns the shape of rows.
Shape require_scores_and_labels(const Inference& inference, std::size_t weights) {
  const auto& options = inference.attribute<Options>();
  const Spec &scores = inference.inputs[0], &labels = inference.inputs[1];
  if (!is_floating(scores.dtype)) inference.fail(detail::kTakesFloating);
  inference.require(scores.shape.rank() >= 1, "takes scores [.., classes]");
  Shape rows = detail::without_last(scores.shape);
  if (is_floating(labels.dtype)) {
    inference.require(labels.dtype == scores.dtype && detail::may_equal(labels.shape, scores.shape),
                      "labels must be i32 or i64 [..], or probabilities like the scores");
    rows = detail::merge(rows, detail::without_last(labels.shape));
  } else {
    inference.require(is_label(labels.dtype), "labels must be i32 or i64, or probabilities");
    inference.require(detail::may_equal(labels.shape, rows),
                      "takes scores [.., classes] and labels [..]");
    rows = detail::merge(rows, labels.shape);
  }
  if (options.has_weights != 0) {
    const Spec& of_classes = inference.inputs[weights];
    inference.require(of_classes.dtype == scores.dtype && of_classes.shape.rank() == 1 &&
                          detail::may_equal(of_classes.shape.dim(0), scores.shape.dim(-1)),
                      "weights must be [classes], of the scores' dtype");
  }
  if (options.has_total != 0)
    detail::require_scalar(inference, options.has_weights != 0 ? weights + 1 : weights,
                           dtype_of_total(scores.dtype), "the total of weights");
  return rows;
}

void infer_cross_entropy(Inference& inference) {
  const Shape rows = require_scores_and_labels(inference, kForwardWeights);
  inference.output(inference.inputs[0].dtype,
                   inference.attribute<Options>().reduction == Options::none ? rows : Shape());
}

void infer_cross_entropy_backward(Inference& inference) {
  const Shape rows = require_scores_and_labels(inference, kBackwardWeights);
  const Spec &scores = inference.inputs[0], &dy = inference.inputs[2];
  const Shape loss = inference.attribute<Options>().reduction == Options::none ? rows : Shape();
  inference.require(dy.dtype == scores.dtype && detail::may_equal(dy.shape, loss),
                    "the gradient of the loss must be of its shape and dtype");
  inference.output(scores.dtype, scores.shape);
}

void infer_label_weights(Inference& inference) {
  const Shape rows = require_scores_and_labels(inference, kForwardWeights);
  inference.require(is_label(inference.inputs[1].dtype), "labels must be i32 or i64");
  inference.output(dtype_of_total(inference.inputs[0].dtype), rows);
}

// A node's inputs: scores, labels and, from `first` on, the optional weights and total.
struct Parts {
  Options options;
  Tensor scores, labels, weights, total;

  Parts(Gradient g, int first) : options(g.attribute<Options>()), scores(g.x(0)), labels(g.x(1)) {
    if (options.has_weights != 0) weights = g.x(first++);
    if (options.has_total != 0) total = g.x(first);
  }
  bool has_labels() const { return is_label(labels.dtype()); }
  // For a gradient that is differentiated again.
  Tensor constant_weights() const { return apply_one(detach_op, {weights}, {}, {}); }

  // The last use of the scores.
  Tensor backward(const Tensor& dy, CallSite site) {
    Inputs5 inputs{std::move(scores), labels, dy};
    if (weights.defined()) inputs.push_back(weights);
    if (total.defined()) inputs.push_back(total);
    return apply_one(softmax_cross_entropy_backward_op, inputs, options, site);
  }
  // The gradient of each row's loss, as [.., 1] or a shape that broadcasts to it; `rows` is [..,
  // 1].
  Tensor share(const Tensor& dy, const Tensor& rows) const {
    if (options.reduction == Options::none) return unsqueeze(dy, -1);
    if (total.defined()) return cast(cast(dy, total.dtype()) / total, dy.dtype());
    // The number of rows may be unknown until shapes are fed.
    if (options.reduction == Options::mean)
      return detail::broadcast_like(dy, rows,
                                    {.axes = (1u << rows.rank()) - 1, .keep = 0, .mean = 1});
    return dy;
  }
  // The weight of each row's label as [.., 1], 0 for an ignored one; without weights 1 in place of
  // weights.
  Tensor of_labels(bool with_weights) const {
    Options how = options;
    how.has_total = 0;
    how.has_weights = with_weights;
    Inputs5 inputs{scores, labels};
    if (with_weights) inputs.push_back(weights);
    Tensor found = apply_one(label_weights_op, inputs, how, {});
    return unsqueeze(cast(found, scores.dtype()), -1);
  }
  // x times the sum of each row's targets, which is often 1.
  Tensor times_targets(Tensor x) const {
    const double label = 1 - options.smoothing, rest = options.smoothing;
    if (!has_labels()) {
      const Tensor weighted = weights.defined() ? labels * constant_weights() : labels;
      const Tensor sums = sum(weighted, {.axis = -1, .keep = true}) * label;
      return x * (weights.defined() ? sums + mean(constant_weights()) * rest : sums + rest);
    }
    if (!weights.defined()) return options.has_ignored != 0 ? x * of_labels(false) : x;
    Tensor sums = of_labels(true) * label;
    if (rest != 0) sums = sums + of_labels(false) * (mean(constant_weights()) * rest);
    return x * sums;
  }
};

// The loss of probabilities is linear in them.
Tensors cross_entropy_gradient(Gradient g) {
  Parts parts(g, kForwardWeights);
  Tensor d_labels;
  if (g.wants(1)) {
    Tensor losses = log_softmax(parts.scores) * -(1 - parts.options.smoothing);
    if (parts.weights.defined()) losses = losses * parts.constant_weights();
    const Tensor rows = sum(parts.labels, {.axis = -1, .keep = true});
    d_labels = losses * parts.share(g.dy(), rows);
  }
  Tensors all(static_cast<std::size_t>(g.inputs()));
  if (g.wants(0)) {
    parts.scores = g.take_x(0);
    all[0] = parts.backward(g.dy(), g.site());
  }
  all[1] = d_labels;
  return all;
}

// dx = share (T p - t) with p = softmax(scores), t the targets of a row and T their sum. With u for
// this node's dy:
//   d/d scores = share T (p u - p sum(p u over classes)),  d/d dy = sum(u (T p - t) share / dy),
//   d/d probabilities = share (1 - smoothing) weights (sum(p u over classes) - u).
Tensors cross_entropy_second_gradient(Gradient g) {
  Parts parts(g, kBackwardWeights);
  const Tensor& u = g.dy();
  const Tensor dy = g.x(2);
  Tensors all(static_cast<std::size_t>(g.inputs()));
  if (g.wants(0) || g.wants(1)) {
    const Tensor p = softmax(parts.scores);
    const Tensor weighted = u * p;
    const Tensor total = sum(weighted, {.axis = -1, .keep = true});
    const Tensor share = parts.share(dy, total);
    if (g.wants(0)) all[0] = (weighted - p * total) * parts.times_targets(share);
    if (g.wants(1)) {
      all[1] = (total - u) * (share * (1 - parts.options.smoothing));
      if (parts.weights.defined()) all[1] = all[1] * parts.constant_weights();
    }
  }
  if (g.wants(2)) {
    const Tensor terms = u * parts.backward(fill_like(dy, 1), g.site());
    all[2] = parts.options.reduction == Options::none ? sum(terms, {.axis = -1}) : sum(terms);
  }
  return all;
}

IndexRange labels_of(const KernelContext& context) {
  const auto& options = context.attribute<Options>();
  return {.kind = IndexRange::label,
          .size = context.inputs[0].spec.shape.dim(-1),
          .ignored = options.has_ignored != 0 ? std::optional(options.ignored) : std::nullopt,
          .check_labels = options.check_labels != 0,
          .function = softmax_cross_entropy_op.name};
}

}  // namespace

Tensor softmax_cross_entropy(const Operand& scores, const Operand& labels,
                             const CrossEntropyOptions& how) {
  const OpDef& op = softmax_cross_entropy_op;
  const detail::CalledScope called(op.name);
  const CallSite site = scores.site();
  const Tensor &x = detail::tensor_of(op, scores), &y = detail::tensor_of(op, labels);
  const auto require = [&](bool condition, const char* text) {
    if (!condition) detail::refuse(op.name, text, site);
  };
  require(how.label_smoothing >= 0 && how.label_smoothing <= 1,
          "takes a label smoothing in [0, 1]");
  require(!how.ignored_label || !is_floating(y.dtype()), "ignores labels, not probabilities");
  Options options{.smoothing = how.label_smoothing,
                  .ignored = how.ignored_label.value_or(0),
                  .reduction = static_cast<Options::Reduction>(how.reduction),
                  .has_ignored = how.ignored_label.has_value(),
                  .has_weights = how.weights.defined(),
                  .check_labels = how.check_labels};
  const detail::HeldOperand held_scores(scores), held_labels(labels);
  detail::Operands operands{*held_scores, *held_labels};
  if (how.weights.defined()) operands.emplace_back(how.weights);
  if (!is_label(y.dtype()) || how.reduction != LossReduction::mean ||
      (!how.weights.defined() && !how.ignored_label))
    return detail::apply_to(op, operands, options);
  detail::Operands read_again{{x, site}, y};
  if (how.weights.defined()) read_again.emplace_back(how.weights);
  Tensor weights = detail::apply_to(label_weights_op, read_again, options);
  const Tensor total = sum({std::move(weights), site});
  options.has_total = 1;
  operands.emplace_back(total);
  return detail::apply_to(op, operands, options);
}

constinit const OpDef softmax_cross_entropy_op{
    .name = "softmax_cross_entropy",
    .infer = infer_cross_entropy,
    .gradient = cross_entropy_gradient,
    .keeps = {kAll, {}},
    .stops_gradient = from(kForwardWeights),
    .indices = labels_of,
    .cpu = cpu::in_float<cpu::softmax_cross_entropy, cpu::softmax_cross_entropy_memory>,
    .cuda = {cuda::softmax_cross_entropy, cuda::softmax_cross_entropy_memory}};

constinit const OpDef softmax_cross_entropy_backward_op{
    .name = "softmax_cross_entropy_backward",
    .infer = infer_cross_entropy_backward,
    .gradient = cross_entropy_second_gradient,
    .keeps = {kAll, {}},
    .takes_over = bit(0),
    .stops_gradient = from(kBackwardWeights),
    .indices = labels_of,
    .cpu = cpu::in_float<cpu::softmax_cross_entropy_backward>,
    .cuda = {cuda::softmax_cross_entropy_backward}};

// Has the name of the public function, which its error messages show.
constinit const OpDef label_weights_op{
    .name = "softmax_cross_entropy",
    .infer = infer_label_weights,
    .gradient = [](Gradient g) { return Tensors(static_cast<std::size_t>(g.inputs())); },
    .shape_only = bit(0),
    .stops_gradient = kAll,
    .indices = labels_of,
    .cpu = cpu::in_float<cpu::label_weights, nullptr, cpu::is_input<0>>,
    .cuda = {cuda::label_weights}};

}  // namespace ebb
