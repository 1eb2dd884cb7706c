#include "ebb/core/ops/loss.h"

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/core/kernels/loss.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/pointwise_rules.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;

void infer_softmax(Inference& inference) {
  inference.require(inference.inputs[0].shape.rank() >= 1, "takes x [..., classes]");
  detail::same_shape(inference);
}

void require_scores_and_labels(const Inference& inference) {
  detail::require_arithmetic(inference, 1);
  const Spec& scores = inference.inputs[0];
  const Spec& labels = inference.inputs[1];
  inference.require(scores.shape.rank() == 2 && labels.shape.rank() == 1 &&
                        detail::may_equal(scores.shape.dim(0), labels.shape.dim(0)),
                    "takes scores [n, classes] and labels [n]");
  inference.require(labels.dtype == DType::i32 || labels.dtype == DType::i64,
                    "labels must be i32 or i64");
}

void infer_cross_entropy(Inference& inference) {
  require_scores_and_labels(inference);
  inference.output(inference.inputs[0].dtype, {});
}

void infer_cross_entropy_backward(Inference& inference) {
  require_scores_and_labels(inference);
  const Spec& scores = inference.inputs[0];
  inference.require(detail::is_scalar(inference.inputs[2], scores.dtype),
                    "the gradient of the loss must be a scalar of the scores' dtype");
  inference.output(scores.dtype, scores.shape);
}

Tensor cross_entropy_backward(const Input& scores, const Tensor& labels, const Tensor& dy,
                              CallSite site) {
  return apply_one(softmax_cross_entropy_backward_op, {scores, labels, dy}, {}, site);
}

// dx = dy (p - onehot) / n with p = softmax(scores). With u for this node's dy:
//   d/d scores = dy / n (p u - p sum(p u over classes)),   d/d dy = sum(u (p - onehot) / n).
Tensors cross_entropy_second_gradient(Gradient g) {
  const Tensor& u = g.dy();
  const Tensor scores = g.x(0), dy = g.x(2);
  Tensor d_scores, d_dy;
  if (g.wants(0)) {
    const Tensor p = softmax(scores);
    const Tensor weighted = u * p;
    const Tensor total = sum(weighted, {.axes = {1}, .keep = true});
    // dy spread over n rows and divided by their number: n is not known before shapes are fed.
    const Tensor share = detail::broadcast_like(dy, total, {.axes = 3, .mean = 1});
    d_scores = (weighted - p * total) * share;
  }
  if (g.wants(2))
    d_dy = sum(u * cross_entropy_backward(scores, g.x(1), fill_like(dy, 1), g.site()));
  return {d_scores, {}, d_dy};
}

}  // namespace

Tensor softmax(const Operand& x) { return detail::apply_to(softmax_op, x); }

Tensor softmax_cross_entropy(const Operand& scores, const Operand& labels) {
  detail::tensor_of(softmax_cross_entropy_op, scores);
  detail::tensor_of(softmax_cross_entropy_op, labels);
  return apply_one(softmax_cross_entropy_op, {scores, labels}, {}, scores.site());
}

Tensor mse(const Operand& a, const Operand& b) {
  detail::tensor_of(difference_op, a);
  detail::tensor_of(difference_op, b);
  const CallSite site = a.site();
  const auto at_site = [&](Tensor&& x) { return Operand(std::move(x), site); };
  Tensor squares = square(at_site(apply_one(difference_op, {a, b}, NumberOperand{}, site)));
  return mean(at_site(std::move(squares)));
}

// A subtraction that broadcasts nothing, when shapes are fed neither.
constinit const OpDef difference_op =
    detail::pair<functors::Subtract>("mse", {.gradient = [](Gradient g) -> Tensors {
                                       Tensor db = g.wants(1) ? -g.dy() : Tensor();
                                       return {g.wants(0) ? g.take_dy() : Tensor(), std::move(db)};
                                     }});

constinit const OpDef softmax_op{.name = "softmax",
                                 .infer = infer_softmax,
                                 .gradient = [](Gradient g) -> Tensors {
                                   Tensor weighted = g.take_dy() * g.y();
                                   const Tensor total = sum(weighted, {.axes = {-1}, .keep = true});
                                   return {std::move(weighted) - g.take_y() * total};
                                 },
                                 .keeps = output(0),
                                 .takes_over = bit(0),
                                 .cpu = {cpu::softmax, cpu::softmax_memory},
                                 .cuda = {cuda::softmax}};

constinit const OpDef softmax_cross_entropy_op{
    .name = "softmax_cross_entropy",
    .infer = infer_cross_entropy,
    .gradient = [](Gradient g) -> Tensors {
      return {cross_entropy_backward(g.take_x(0), g.x(1), g.dy(), g.site()), {}};
    },
    .keeps = input(0) | input(1),
    .cpu = {cpu::softmax_cross_entropy, cpu::softmax_cross_entropy_memory},
    .cuda = {cuda::softmax_cross_entropy, cuda::softmax_cross_entropy_memory}};

constinit const OpDef softmax_cross_entropy_backward_op{
    .name = "softmax_cross_entropy_backward",
    .infer = infer_cross_entropy_backward,
    .gradient = cross_entropy_second_gradient,
    .keeps = input(0) | input(1) | input(2),
    .takes_over = bit(0),
    .cpu = {cpu::softmax_cross_entropy_backward, cpu::softmax_cross_entropy_backward_memory},
    .cuda = {cuda::softmax_cross_entropy_backward}};

}  // namespace ebb
