// Normalisations of more rows and channels than are summed at once.
#include "ebb/core/ops/norm.h"

#include <cmath>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/powers.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/golden/golden.h"

namespace ebb::tests {
namespace {

constexpr double kEpsilon = 1e-3;

Tensor filled(const Shape& shape, std::int64_t step) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(static_cast<double>((i * step + i / 97) % 211 - 100) / 60);
  return Tensor::from(values, shape);
}

Tensor normalised(const Tensor& x, const Axes& axes) {
  const Tensor distance = x - mean(x, {.axes = axes, .keep = true});
  return distance * rsqrt(mean(square(distance), {.axes = axes, .keep = true}) + kEpsilon);
}

// "" where two functions of x, scale and shift have the same results and gradients.
template <class F, class G>
std::string difference(const Tensors& in, const F& f, const G& g) {
  const auto results = [&](const auto& function) {
    const Tensor x = in[0].detach().with_grad(), scale = in[1].detach().with_grad(),
                 shift = in[2].detach().with_grad();
    const Tensor y = function(x, scale, shift);
    Tensors all = gradients(sum(y * filled(y.shape(), 37)), {x, scale, shift});
    all.push_back(y);
    return all;
  };
  const Tensors got = results(f), right = results(g);
  for (std::size_t k = 0; k < got.size(); ++k) {
    const auto values = got[k].to_vector<double>(), expected = right[k].to_vector<double>();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!(std::abs(values[i] - expected[i]) < 1e-10 * (1 + std::abs(expected[i]))))
        return "element " + std::to_string(i) + " of " + std::to_string(k) + " is " +
               std::to_string(values[i]) + ", not " + std::to_string(expected[i]);
  }
  return "";
}

}  // namespace

TEST_CASE("layer and group norms of many rows are their formulas, and so are their gradients") {
  const Tensor x = filled({6000, 33}, 7), scale = filled({33}, 5), shift = filled({33}, 3);
  CHECK(difference(
            {x, scale, shift},
            [](const Tensor& x, const Tensor& scale, const Tensor& shift) {
              return layer_norm(x, scale, shift, {.epsilon = kEpsilon});
            },
            [](const Tensor& x, const Tensor& scale, const Tensor& shift) {
              return normalised(x, {1}) * scale + shift;
            }) == "");
  for (const Shape& shape : {Shape{3000, 6, 5}, Shape{40, 6, 700}, Shape{2, 36, 1500}}) {
    CAPTURE(shape.to_string());
    const std::int64_t channels = shape[1];
    CHECK(difference(
              {filled(shape, 7), filled({channels}, 5), filled({channels}, 3)},
              [](const Tensor& x, const Tensor& scale, const Tensor& shift) {
                return group_norm(x, 3, scale, shift, {.epsilon = kEpsilon});
              },
              [&](const Tensor& x, const Tensor& scale, const Tensor& shift) {
                const Tensor groups = reshape(x, {shape[0], 3, channels / 3 * shape[2]});
                return reshape(normalised(groups, {2}), shape) * unsqueeze(scale, 1) +
                       unsqueeze(shift, 1);
              }) == "");
  }
}

TEST_CASE("batch norms of many rows are their formulas, gradients and running statistics too") {
  const struct {
    Shape shape;
    int axis;
  } cases[] = {{{6000, 33}, 1}, {{50, 3, 700}, 1}, {{3000, 5, 7}, 1}, {{20, 300, 40}, 2}};
  for (const auto& [shape, axis] : cases) {
    CAPTURE(shape.to_string(), axis);
    const std::int64_t channels = shape[axis];
    const int behind = shape.rank() - 1 - axis;
    Axes axes;
    for (int i = 0; i < shape.rank(); ++i)
      if (i != axis) axes.push_back(i);
    const auto beside = [&](const Tensor& t) { return behind == 0 ? t : unsqueeze(t, -1); };
    const Tensor x = filled(shape, 7);
    const Tensor running_mean = Tensor::zeros({channels}, DType::f64),
                 running_variance = Tensor::zeros({channels}, DType::f64);
    CHECK(difference(
              {x, filled({channels}, 5), filled({channels}, 3)},
              [&](const Tensor& x, const Tensor& scale, const Tensor& shift) {
                return batch_norm(
                    x, scale, shift, running_mean, running_variance,
                    {.phase = Phase::training, .axis = axis, .momentum = 0.5, .epsilon = kEpsilon});
              },
              [&](const Tensor& x, const Tensor& scale, const Tensor& shift) {
                return normalised(x, axes) * beside(scale) + beside(shift);
              }) == "");
    const auto near = [](const Tensor& got, const Tensor& right) {
      const auto values = got.to_vector<double>(), expected = right.to_vector<double>();
      for (std::size_t i = 0; i < values.size(); ++i)
        if (!(std::abs(values[i] - expected[i]) < 1e-12)) return false;
      return true;
    };
    const Tensor distance = x - mean(x, {.axes = axes, .keep = true});
    const double terms = static_cast<double>(shape.elements() / channels);
    CHECK(near(running_mean, mean(x, {.axes = axes}) * 0.5));
    CHECK(near(running_variance, sum(square(distance), {.axes = axes}) * (0.5 / (terms - 1))));
  }
}

TEST_CASE("a group norm of open length has the second derivatives of eager") {
  Graph graph;
  const Tensor open = graph.placeholder("x", DType::f64, {2, 4, -1});
  const Tensor scale = filled({4}, 5), shift = filled({4}, 3), value = filled({2, 4, 6}, 7);
  const auto second = [&](const Tensor& x) {
    const Tensor y = group_norm(x, 2, scale, shift, {.epsilon = kEpsilon});
    const Tensor slope = gradients(sum(square(y)), {x}, {.create_graph = true})[0];
    return gradients(sum(square(slope)), {x})[0];
  };
  const Tensor result = second(open);
  Session session(graph);
  CHECK(distance(session.run(result, {{open, value}}), second(value.with_grad())) < 1e-10);
}

TEST_CASE("norms refuse what makes no sense, and take channels that are open") {
  const Tensor x = Tensor::zeros({4, 6}), of_6 = Tensor::zeros({6});
  const auto batch = [&](const Tensor& mean, const BatchNormOptions& options) {
    return batch_norm(x, of_6, of_6, mean, mean, options);
  };
  CHECK_ERROR(batch(of_6, {.momentum = 1.5}), Error, "[batch_norm] takes a momentum in [0, 1]");
  CHECK_ERROR(batch(of_6, {.momentum = -0.5}), Error, "[batch_norm] takes a momentum in [0, 1]");
  CHECK_ERROR(batch(of_6, {.epsilon = -1}), Error, "[batch_norm] takes an epsilon of 0 or more");
  for (const Phase phase : {Phase::training, Phase::inference}) {
    CHECK_ERROR(batch(cast(of_6, DType::f64), {.phase = phase}), ShapeError,
                "running mean and variance must be [channels], f64 for f64, else f32");
    CHECK_ERROR(batch(Tensor::zeros({1}), {.phase = phase}), ShapeError,
                "running mean and variance must be [channels]");
  }
  CHECK_ERROR(layer_norm(x, {.axes = 0}), Error, "[layer_norm] takes at least one axis");
  CHECK_ERROR(layer_norm(x, {.axes = 3}), ShapeError, "takes x of at least the axes it normalises");
  CHECK_ERROR(rms_norm(x, {.epsilon = -1}), Error, "[rms_norm] takes an epsilon of 0 or more");
  CHECK_ERROR(group_norm(x, 4, of_6, of_6), ShapeError, "a multiple of the groups'");
  CHECK_ERROR(group_norm(x, 0, of_6, of_6), Error, "[group_norm] takes at least one group");
  Graph graph;
  const Tensor open = graph.placeholder("x", DType::f32, {4, -1}),
               scale = graph.placeholder("scale", DType::f32, {-1});
  const Tensor y = group_norm(open, 2, scale, scale);
  Session session(graph);
  const Tensor value = cast(filled({4, 6}, 7), DType::f32), ones = Tensor::full({6}, 1);
  CHECK(
      bit_equal(session.run(y, {{open, value}, {scale, ones}}), group_norm(value, 2, ones, ones)));
  CHECK_ERROR(session.run(y, {{open, Tensor::zeros({4, 5})}, {scale, Tensor::zeros({5})}}),
              ShapeError, "a multiple of the groups'");
}

}  // namespace ebb::tests
