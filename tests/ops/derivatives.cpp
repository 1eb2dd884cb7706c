#include <cmath>
#include <set>

#include "ebb/core/autodiff/check_gradient.h"
#include "ebb/core/base/error.h"
#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/gru.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/core/ops/powers.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/rounding.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/ops/trigonometry.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/ops/harness.h"
#include "ebb/tests/ops/refuses.h"

namespace ebb::tests {
namespace {

// A scalar that depends on every element of every floating result, with a different weight for
// each.
Tensor weighted(const Tensors& results) {
  Tensor total = Tensor::zeros({}, DType::f64);
  double next = 0.8;  // a logistic map, in (0.5, 1.5)
  for (const Tensor& result : results) {
    if (!is_floating(result.dtype())) continue;
    std::vector<double> weights(static_cast<std::size_t>(result.elements()));
    for (double& weight : weights) weight = next = 0.5 + 3.7 * (next - 0.5) * (1.5 - next);
    total = total + sum(result * Tensor::from(weights, result.shape()));
  }
  return total;
}

GradientCheck check(const Sample& sample, std::int64_t batch, GradientCheckOptions how) {
  const Tensors inputs = make_inputs(sample, DType::f64, batch);
  Tensors floating;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (is_floating(inputs[i].dtype()) && !sample.state.has(i)) floating.push_back(inputs[i]);
  const auto function = [&](const Tensors& x) {
    Tensors all = inputs;
    std::size_t next = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (is_floating(all[i].dtype()) && !sample.state.has(i)) all[i] = x[next++];
    return weighted(run_eagerly(sample, all));
  };
  return check_gradient(function, floating, how);
}

// Differences element by element on the CPU, along two random directions elsewhere. Two directions
// suffice on a GPU, since gradient rules are made of operators that are compared with references on
// every device. They also suffice for a batch of one, and for stacks, whose references difference
// each element.
GradientCheck check(const Sample& sample, std::int64_t batch) {
  const bool is_stack = sample.op == &lstm_op || sample.op == &gru_op;
  const bool one_by_one = on_host() && !is_stack && batch > 1;
  return check(sample, batch, {.order = sample.order, .directions = one_by_one ? 0 : 2});
}

// A square whose gradient lacks the factor 2.
const OpDef wrong_square_op{
    .name = "wrong_square",
    .infer = detail::same_shape,
    .gradient = [](const GradientContext& g) -> Tensors { return {g.dy() * g.x(0)}; },
    .keeps = input(0),
    .cpu = {cpu::map<functors::Square>},
    .cuda = {cuda::map<functors::Square>}};

// A square whose first gradient is right and whose second is wrong.
const OpDef half_wrong_op{
    .name = "half_wrong",
    .infer = detail::same_shape,
    .gradient = [](const GradientContext& g) -> Tensors { return {g.dy() * 2 * g.x(0).detach()}; },
    .keeps = input(0),
    .cpu = {cpu::map<functors::Square>},
    .cuda = {cuda::map<functors::Square>}};

}  // namespace

TEST_CASE("Every gradient rule agrees with central differences, to the order it is defined for") {
  for (const Sample& sample : all_samples(DType::f64)) {
    if (sample.order == 0) continue;
    for (const std::int64_t batch : {1, 3}) {
      if (on_emulated_cuda() && batch == 1) continue;
      INFO(sample.name << ", batch of " << batch);
      CHECK(check(sample, batch).report == "");
    }
  }
}

// Only stacks need this: other gradients are made of operators that against_references.cpp checks
// at such sizes.
TEST_CASE("Gradients of stacks agree with differences where their work is cut into pieces") {
  if (!on_host()) return;  // only the CPU cuts work like this
  for (const Sample& sample : all_samples(DType::f64)) {
    if (sample.op != &lstm_op && sample.op != &gru_op) continue;
    if (sample.inputs.size() > 20) continue;
    const std::int64_t batch = 520;  // more than the 512 rows that backward takes at a time
    INFO(sample.name << ", batch of " << batch);
    CHECK(check(sample, batch, {.directions = 2}).report == "");
  }
}

TEST_CASE("Gradients of an empty batch are zero or empty") {
  for (const Sample& sample : all_samples(DType::f64)) {
    if (sample.order == 0 || sample.name.find("mean") != std::string::npos ||
        sample.name.find("cross_entropy") != std::string::npos)
      continue;  // the mean over nothing is NaN
    INFO(sample.name);
    CHECK(check(sample, 0).report == "");
  }
}

TEST_CASE("check_gradient finds a wrong rule, of the first order and of the second") {
  const Tensor x = Tensor::from({0.5, -1.5});
  const auto apply_to = [](const OpDef& op) {
    return [&op](const Tensors& in) { return detail::apply_to(op, in[0]); };
  };
  const GradientCheck wrong = check_gradient(apply_to(wrong_square_op), {x});
  CHECK_FALSE(wrong);
  CHECK(wrong.report.find("input 0, element") != std::string::npos);
  CHECK(check_gradient(apply_to(half_wrong_op), {x}));
  const GradientCheck second = check_gradient(apply_to(half_wrong_op), {x}, {.order = 2});
  CHECK_FALSE(second);
  CHECK(second.report.find("second order") != std::string::npos);
  const auto no_second = [](const Tensors& in) { return sum(pow(abs(in[0]), 1.5)); };
  CHECK(std::isnan(check_gradient(no_second, {Tensor::from({0.0})}, {.order = 2}).worst));
  CHECK(check_gradient([](const Tensors& in) { return square(in[0]); }, {x}, {.order = 2}));
  const GradientCheck along = check_gradient(apply_to(wrong_square_op), {x}, {.directions = 1});
  CHECK_FALSE(along);
  CHECK(along.report.find("input 0, direction 0") != std::string::npos);
  CHECK_FALSE(check_gradient(apply_to(half_wrong_op), {x}, {.order = 2, .directions = 2}));
  CHECK(check_gradient([](const Tensors& in) { return square(in[0]); }, {x},
                       {.order = 2, .directions = 2}));
}

TEST_CASE("check_gradient goes along so many directions, with both signs and no two alike") {
  std::vector<std::vector<double>> seen;
  const auto function = [&](const Tensors& in) {
    seen.push_back(in[0].to_vector<double>());
    return square(in[0]);
  };
  CHECK(check_gradient(function, {Tensor::zeros({40}, DType::f64)}, {.directions = 3}));
  REQUIRE(seen.size() == 1 + 2 * 3);
  for (const std::size_t above : {1u, 3u, 5u}) {
    std::set<bool> signs;
    for (std::size_t j = 0; j < 40; ++j) {
      CHECK(seen[above][j] == -seen[above + 1][j]);
      signs.insert(seen[above][j] > 0);
    }
    CHECK(signs.size() == 2);
    for (std::size_t other = 1; other < above; ++other) CHECK(seen[other] != seen[above]);
  }
  seen.clear();
  CHECK(check_gradient(function, {Tensor::zeros({2}, DType::f64)}));
  REQUIRE(seen.size() == 1 + 2 * 2);
  CHECK((seen[1][1] == 0 && seen[3][0] == 0 && seen[3][1] > 0));
  CHECK(check_gradient(function, {Tensor::zeros({0}, DType::f64)}, {.directions = 2}));
  CHECK(check_gradient(function, {Tensor::zeros({0}, DType::f64)}));
  const GradientCheck wrong =
      check_gradient([](const Tensors& in) { return detail::apply_to(wrong_square_op, in[0]); },
                     {Tensor::from({1.0, 1.0})}, {.directions = 4});
  CHECK_FALSE(wrong);
  CHECK(wrong.report.starts_with("input 0, direction 1: computed 2.079"));
}

TEST_CASE("The gradients of asinh and acosh are as exact for large numbers as for small ones") {
  for (const auto& [dtype, epsilon] : {std::pair{DType::bf16, 0x1p-7},
                                       {DType::f16, 0x1p-10},
                                       {DType::f32, 0x1p-23},
                                       {DType::f64, 0x1p-52}}) {
    const double most = dtype == DType::f16 ? 12000 : 1e30;
    for (const double of : {1.01, 3., 700., most}) {
      CAPTURE(dtype, of);
      const Tensor x = cast(Tensor::from({of}), dtype).with_grad();
      const double at = cast(x, DType::f64).item<double>();
      const auto gradient = [&](const Tensor& y) {
        return cast(gradients(sum(y), {x})[0], DType::f64).item<double>();
      };
      CHECK(gradient(asinh(x)) == Approx(1 / std::hypot(at, 1.)).epsilon(4 * epsilon).margin(0));
      CHECK(gradient(asinh(-x)) == Approx(-1 / std::hypot(at, 1.)).epsilon(4 * epsilon).margin(0));
      CHECK(gradient(acosh(x)) ==
            Approx(1 / (std::sqrt(at - 1) * std::sqrt(at + 1))).epsilon(4 * epsilon).margin(0));
    }
  }
  const Tensor ends = Tensor::from({-INFINITY, -1.f, 0.f, 1.f, INFINITY}).with_grad();
  const Tensor g = gradients(sum(asinh(ends)), {ends}, {.create_graph = true})[0];
  CHECK(g.to_vector<float>()[0] == 0);
  CHECK(g.to_vector<float>()[4] == 0);
  CHECK(check_gradient([](const Tensors& in) { return asinh(in[0]); },
                       {Tensor::from({-40., -1., -0.3, 0., 0.7, 1., 5.})}, {.order = 2}));
}

TEST_CASE("The gradients of asin, acos and atanh are exact next to 1 too") {
  struct Near {
    DType dtype;
    double epsilon, below;  // distance from 1 at which 1 - x * x loses most digits
  };
  for (const Near& near : {Near{DType::f32, 0x1p-23, 0x1.8p-13}, {DType::f64, 0x1p-52, 0x1.8p-28}})
    for (const double at : {1 - near.below, near.below - 1}) {
      CAPTURE(near.dtype, at);
      const Tensor x = cast(Tensor::from({at}), near.dtype).with_grad();
      const auto check = [&](const Tensor& y, double expected) {
        CHECK(cast(gradients(sum(y), {x})[0], DType::f64).item<double>() ==
              Approx(expected).epsilon(4 * near.epsilon).margin(0));
      };
      const double less = (1 - at) * (1 + at);
      check(asin(x), 1 / std::sqrt(less));
      check(acos(x), -1 / std::sqrt(less));
      check(atanh(x), 1 / less);
    }
}

TEST_CASE("The gradients of atan2 neither overflow nor vanish, and are 1 / x on an axis") {
  for (const float size : {1e-30f, 1.f, 1e30f}) {
    CAPTURE(size);
    const Tensor y = Tensor::from({size, -size, 0.f, 0.f}).with_grad(),
                 x = Tensor::from({size, 0.f, -size, size}).with_grad();
    const auto near = [&](const Tensor& slope, const std::vector<double>& expected) {
      const std::vector<float> got = slope.to_vector<float>();
      REQUIRE(got.size() == expected.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        CHECK(static_cast<double>(got[i]) * static_cast<double>(size) ==
              Approx(expected[i]).epsilon(1e-6));
    };
    const Tensors both = gradients(sum(atan2(y, x)), {y, x});
    near(both[0], {0.5, 0, -1, 1});
    near(both[1], {-0.5, 1, 0, 0});
    const auto number = static_cast<double>(size);
    near(gradients(sum(atan2(y, -number)), {y})[0], {-0.5, -0.5, -1, -1});
    near(gradients(sum(atan2(-number, x)), {x})[0], {0.5, 1, 0.5, 0.5});
  }
}

TEST_CASE("check_gradient says that it agrees of nothing that it has not tried") {
  const auto wrong = [](const Tensors& in) { return detail::apply_to(wrong_square_op, in[0]); };
  const Tensor x = Tensor::from({0.5, -1.5});
  CHECK(check_gradient(wrong, {x}, {.step = 1e-20}).report ==
        "input 0, element 1: a step moves nothing");
  CHECK_FALSE(check_gradient(wrong, {Tensor::from({kInfinity64})}));
  CHECK_FALSE(check_gradient(wrong, {Tensor::from({std::nan("")})}));
  const auto logarithm = [](const Tensors& in) { return log(in[0]); };
  CHECK_FALSE(check_gradient(logarithm, {Tensor::from({-1.})}));  // the logarithm of -1 is NaN
  CHECK_FALSE(check_gradient(wrong, {Tensor::from({std::nan("")})}, {.directions = 1}));
  for (const double step : {0., -1e-5, std::nan(""), kInfinity64})
    CHECK_ERROR(check_gradient(wrong, {x}, {.step = step}), Error, "takes a step above 0");
  for (const double tolerance : {-1., std::nan(""), kInfinity64})
    CHECK_ERROR(check_gradient(wrong, {x}, {.tolerance = tolerance}), Error, "takes a tolerance");
  for (const int order : {0, 3})
    CHECK_ERROR(check_gradient(wrong, {x}, {.order = order}), Error, "takes an order of 1 or 2");
  EBB_REFUSES(check_gradient(wrong, {Tensor::from({1.f})}), Error,
              "[check_gradient] takes f64 inputs, not f32[1]");
  EBB_REFUSES(check_gradient(wrong, {x}, {.directions = -1}), Error, "[check_gradient] ");
}

TEST_CASE("The second derivatives of lstm and gru are refused by name") {
  const Tensor x = Tensor::full({2, 3, 1}, 0.5, DType::f64).with_grad();
  const auto of = [](const Shape& shape) { return Tensor::full(shape, 0.1, DType::f64); };
  const auto refuses = [&](const Tensor& sequence, const char* name) {
    const Tensor slope = gradients(sum(sequence), {x}, {.create_graph = true})[0];
    CHECK_ERROR(gradients(sum(square(slope)), {x}), NotDifferentiable, name);
  };
  refuses(lstm(x, {LstmWeights{of({1, 8}), of({2, 8}), of({8})}}).sequence, "[lstm_backward]");
  refuses(gru(x, {GruWeights{of({1, 6}), of({2, 6}), of({8})}}).sequence, "[gru_backward]");
}

}  // namespace ebb::tests
