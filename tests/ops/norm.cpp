// Normalisations in a graph, and their refusals.
#include "ebb/core/ops/norm.h"

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/ops/refuses.h"

namespace ebb::tests {
namespace {

Tensor filled(const Shape& shape, std::int64_t step) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(static_cast<double>((i * step + i / 97) % 211 - 100) / 60);
  return Tensor::from(values, shape);
}

}  // namespace

TEST_CASE("a group norm of open length has the second derivatives of eager") {
  Graph graph;
  const Tensor open = graph.placeholder("x", DType::f64, {2, 4, -1});
  const Tensor scale = filled({4}, 5), shift = filled({4}, 3), value = filled({2, 4, 6}, 7);
  const auto second = [&](const Tensor& x) {
    const Tensor y = group_norm(x, 2, scale, shift, {.epsilon = 1e-3});
    const Tensor slope = gradients(sum(square(y)), {x}, {.create_graph = true})[0];
    return gradients(sum(square(slope)), {x})[0];
  };
  const Tensor result = second(open);
  Session session(graph);
  CHECK(distance(session.run(result, {{open, value}}), second(value.with_grad())) < 1e-10);
}

TEST_CASE("a batch of images without pixels is normalised to another") {
  const Tensor x = Tensor::zeros({2, 3, 0, 4}).with_grad(), one = Tensor::full({3}, 1),
               mean = Tensor::zeros({3}), variance = Tensor::full({3}, 1);
  const Tensor y = batch_norm(x, one, one, mean, variance, {.phase = Phase::training});
  CHECK(y.shape() == x.shape());
  sum(y).backward();
  CHECK(x.grad().shape() == x.shape());
}

TEST_CASE("norms refuse what makes no sense, and take channels that are open") {
  const Tensor x = Tensor::zeros({4, 6}), of_6 = Tensor::zeros({6});
  const auto batch = [&](const Tensor& mean, const BatchNormOptions& options) {
    return batch_norm(x, of_6, of_6, mean, mean, options);
  };
  EBB_REFUSES(batch(of_6, {.momentum = 1.5}), Error, "[batch_norm] takes a momentum in [0, 1]");
  EBB_REFUSES(batch(of_6, {.momentum = -0.5}), Error, "[batch_norm] takes a momentum in [0, 1]");
  EBB_REFUSES(batch(of_6, {.epsilon = -1}), Error, "[batch_norm] takes an epsilon of 0 or more");
  for (const Phase phase : {Phase::training, Phase::inference}) {
    EBB_REFUSES(batch(cast(of_6, DType::f64), {.phase = phase}), ShapeError,
                "running mean and variance must be [channels], f64 for f64, else f32");
    EBB_REFUSES(batch(of_6, {.phase = phase, .axis = 9}), ShapeError, "[batch_norm] ");
    EBB_REFUSES(batch(Tensor::zeros({1}), {.phase = phase}), ShapeError,
                "running mean and variance must be [channels]");
  }
  EBB_REFUSES(layer_norm(x, {.axes = 0}), Error, "[layer_norm] takes at least one axis");
  EBB_REFUSES(layer_norm(x, {.axes = 3}), ShapeError, "takes x of at least the axes it normalises");
  EBB_REFUSES(rms_norm(x, {.epsilon = -1}), Error, "[rms_norm] takes an epsilon of 0 or more");
  EBB_REFUSES(group_norm(x, 4, of_6, of_6), ShapeError, "a multiple of the groups'");
  EBB_REFUSES(group_norm(x, 0, of_6, of_6), Error, "[group_norm] takes at least one group");
  Graph graph;
  const Tensor open = graph.placeholder("x", DType::f32, {4, -1}),
               scale = graph.placeholder("scale", DType::f32, {-1});
  const Tensor y = group_norm(open, 2, scale, scale);
  Session session(graph);
  const Tensor value = cast(filled({4, 6}, 7), DType::f32), ones = Tensor::full({6}, 1);
  CHECK(
      bit_equal(session.run(y, {{open, value}, {scale, ones}}), group_norm(value, 2, ones, ones)));
  EBB_REFUSES(session.run(y, {{open, Tensor::zeros({4, 5})}, {scale, Tensor::zeros({5})}}),
              ShapeError, "a multiple of the groups'");
}

}  // namespace ebb::tests
