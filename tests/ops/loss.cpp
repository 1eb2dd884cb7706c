// Losses: nothing left to count, numbers too large, refusals.
#include "ebb/core/ops/loss.h"

#include <cmath>
#include <limits>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/ops/refuses.h"

namespace ebb::tests {
namespace {

using Doubles = std::vector<double>;

}  // namespace

TEST_CASE("The mean of no row is NaN, the sum 0, and an ignored row has no gradient") {
  const Tensor x = Tensor::from({{1.0, 2.0}, {3.0, 4.0}}).with_grad();
  const Tensor none_left = Tensor::from({-1, -1});
  CHECK(std::isnan(values_of(softmax_cross_entropy(x, none_left, {.ignored_label = -1}))[0]));
  const Tensor sum_of =
      softmax_cross_entropy(x, none_left, {.ignored_label = -1, .reduction = LossReduction::sum});
  CHECK(values_of(sum_of) == Doubles{0});
  const Tensor one = softmax_cross_entropy(x, Tensor::from({-1, 0}), {.ignored_label = -1});
  const Doubles g = values_of(gradients(one, {x})[0]);
  CHECK(g[0] == 0);
  CHECK(g[1] == 0);
  CHECK(std::abs(g[3] - 1 / (1 + std::exp(-1.0))) < 1e-15);
  // A masked class with probability 0.
  const Tensor masked = Tensor::from({{1.0, -std::numeric_limits<double>::infinity(), 3.0}});
  const Tensor p = Tensor::from({{0.5, 0.0, 0.5}});
  CHECK(std::isfinite(values_of(softmax_cross_entropy(masked, p))[0]));
}

TEST_CASE("The weights of binary cross entropies broadcast to the logits, and not beyond them") {
  const Tensor x = Tensor::from({{0.5, -1.0, 2.0}, {1.5, 0.25, -0.5}}), z = x * 0 + 0.25;
  const Tensor each = binary_cross_entropy_with_logits(x, z, {.reduction = LossReduction::none});
  for (const Shape& shape : {Shape{1, 3}, Shape{2, 1}, Shape{3}, Shape{}, Shape{2, 3}}) {
    CAPTURE(shape.to_string());
    std::vector<double> values;
    for (std::int64_t i = 0; i < shape.elements(); ++i)
      values.push_back(static_cast<double>(i + 1));
    const Tensor w = Tensor::from(values, shape);
    CHECK(values_of(binary_cross_entropy_with_logits(
              x, z, {.weights = w, .reduction = LossReduction::none})) == values_of(each * w));
  }
  for (const Shape& shape : {Shape{1, 2, 3}, Shape{2}, Shape{3, 1}})
    EBB_REFUSES(
        binary_cross_entropy_with_logits(x, z, {.weights = Tensor::zeros(shape, DType::f64)}),
        ShapeError, "must have the logits' dtype and broadcast to their shape");
}

TEST_CASE("Small losses are as accurate as large ones, and large ones do not overflow") {
  const Tensor x = Tensor::from({40.0, -40.0, 800.0, -800.0, 0.0}),
               z = Tensor::from({1.0, 0.0, 0.0, 1.0, 0.5});
  const Doubles loss =
      values_of(binary_cross_entropy_with_logits(x, z, {.reduction = LossReduction::none}));
  CHECK(std::abs(loss[0] / std::exp(-40.0) - 1) < 1e-14);
  CHECK(std::abs(loss[1] / std::exp(-40.0) - 1) < 1e-14);
  CHECK(loss[2] == 800);
  CHECK(loss[3] == 800);
  CHECK(std::abs(loss[4] - std::log(2.0)) < 1e-15);
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor log_p = Tensor::from({{-inf, 0.0}}).with_grad(),
               log_q = Tensor::from({{std::log(0.25), std::log(0.75)}}).with_grad();
  const Tensor kl = kl_divergence(log_p, log_q);
  CHECK(std::abs(values_of(kl)[0] + std::log(0.75)) < 1e-15);
  const Tensors g = gradients(kl, {log_p, log_q});
  CHECK(values_of(g[0])[0] == 0);
  CHECK(values_of(g[1]) == Doubles{0, -1});
  CHECK(std::isnan(values_of(mae(Tensor::from({kNaN64}), Tensor::from({1.0})))[0]));
  CHECK(std::isnan(values_of(huber(Tensor::from({kNaN64}), Tensor::from({1.0})))[0]));
}

TEST_CASE("Losses refuse options that make no sense") {
  const Tensor a = Tensor::zeros({2, 3}), labels = Tensor::from({0, 1});
  EBB_REFUSES(huber(a, a, {.delta = 0}), Error, "[huber] takes a delta above 0");
  EBB_REFUSES(smooth_l1(a, a, {.beta = kNaN64}), Error, "[smooth_l1] takes a beta above 0");
  EBB_REFUSES(kl_divergence(Tensor::zeros({}), Tensor::zeros({})), ShapeError,
              "[kl_divergence] takes log p and log q [.., classes]");
  EBB_REFUSES(binary_cross_entropy_with_logits(a, a, {.weights = Tensor::zeros({2})}), ShapeError,
              "[binary_cross_entropy_with_logits] the weights, f32[2], must have the logits' dtype "
              "and broadcast to their shape; the input is f32[2, 3]");
  EBB_REFUSES(softmax_cross_entropy(a, labels, {.label_smoothing = 1.5}), Error,
              "[softmax_cross_entropy] takes a label smoothing in [0, 1]");
  EBB_REFUSES(softmax_cross_entropy(a, a, {.ignored_label = 0}), Error,
              "[softmax_cross_entropy] ignores labels, not probabilities");
  const CrossEntropyOptions two{.weights = Tensor::zeros({2})};
  EBB_REFUSES(softmax_cross_entropy(a, labels, two), ShapeError,
              "[softmax_cross_entropy] weights must be [classes], of the scores' dtype; inputs are "
              "f32[2, 3], i32[2], f32[2]");
  EBB_REFUSES(softmax_cross_entropy(a, Tensor::zeros({3, 2})), ShapeError,
              "labels must be i32 or i64 [..], or probabilities like the scores");
  EBB_REFUSES(log_softmax(a, 2), ShapeError,
              "[log_softmax] there is no axis 2; the input is f32[2, 3]");
}

}  // namespace ebb::tests
