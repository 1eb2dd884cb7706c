// Users' operators made from functors: kernels, gradients, both modes, memory, errors.
#include <cmath>
#include <functional>

#include "ebb/core/autodiff/check_gradient.h"
#include "ebb/core/base/error.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/memory/predict.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/tensor/gradient_context.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/custom/operators.h"
#include "ebb/tests/kernels/threads.h"

using namespace ebb;
using namespace ebb::tests;

// A GPU runs kernels compiled by nvcc, the emulated one kernels compiled for it.
#define EBB_SKIP_WITHOUT_KERNELS()                                    \
  if (!has_kernels_here()) {                                          \
    WARN("left out: these kernels were compiled for another device"); \
    return;                                                           \
  }

namespace {

double mish_of(double x) { return x * std::tanh(std::log1p(std::exp(x))); }
double log_cosh_of(double a, double b) { return std::log(std::cosh(a - b)); }
double blend_of(double w, double a, double b) { return w * a + (1 - w) * b; }

Tensor ramp(const Shape& shape, double from, double step, DType dtype = DType::f64) {
  std::int64_t count = 1;
  for (int i = 0; i < shape.rank(); ++i) count *= shape.dim(i);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = from + step * static_cast<double>(i % 101);
  return cast(Tensor::from(values, shape), dtype);
}

std::vector<double> values_of(const Tensor& x) { return x.to_vector<double>(); }

// Broadcasts the inputs with operators that are tested elsewhere.
std::vector<std::vector<double>> broadcast_values(const Tensors& inputs) {
  Tensor all = zeros_like(cast(inputs[0], DType::f64));
  for (const Tensor& input : inputs) all = all + 0 * cast(input, DType::f64);
  std::vector<std::vector<double>> values;
  for (const Tensor& input : inputs) values.push_back(values_of(all + cast(input, DType::f64)));
  return values;
}

using Reference = std::function<double(const std::vector<double>&)>;

void check_values(const Tensor& y, const Tensors& inputs, const Reference& reference) {
  const DType dtype = inputs[0].dtype();
  CAPTURE(name(dtype));
  REQUIRE(y.dtype() == dtype);
  const auto x = broadcast_values(inputs);
  const std::vector<double> found = values_of(y);
  REQUIRE(found.size() == x[0].size());
  const double ulp = dtype == DType::f64   ? 1e-14
                     : dtype == DType::f32 ? 2e-6
                     : dtype == DType::f16 ? 1e-3
                                           : 8e-3;
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::vector<double> at;
    for (const auto& values : x) at.push_back(values[i]);
    const double expected = reference(at);
    if (std::abs(found[i] - expected) > ulp * std::max(1.0, std::abs(expected))) {
      CAPTURE(i, found[i], expected);
      FAIL_CHECK("another value");
      return;
    }
  }
}

const DType kFloating[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

}  // namespace

TEST_CASE("functors of one, two and three inputs are applied element by element and broadcast") {
  EBB_SKIP_WITHOUT_KERNELS();
  const Shape unary[] = {{}, {0}, {1}, {7}, {513}, {3, 0, 2}, {40'001}};
  struct Pair {
    Shape a, b;
  };
  const Pair pairs[] = {{{5}, {5}},        {{}, {5}},           {{4, 1}, {1, 3}},
                        {{2, 3, 700}, {}}, {{3, 1, 5}, {4, 1}}, {{0, 3}, {1, 3}},
                        {{1}, {1, 1}},     {{40'000}, {1}},     {{600, 2}, {600, 1}},
                        {{2, 600}, {600}}, {{1, 9}, {9}}};
  for (const DType dtype : kFloating) {
    for (const Shape& shape : unary) {
      CAPTURE(shape.to_string());
      const Tensor x = ramp(shape, -3, 0.07, dtype);
      check_values(mish(x), {x}, [](const auto& at) { return mish_of(at[0]); });
      check_values(swish(x, 1.5), {x},
                   [](const auto& at) { return at[0] / (1 + std::exp(-1.5 * at[0])); });
    }
    for (const auto& [first, second] : pairs) {
      CAPTURE(first.to_string(), second.to_string());
      const Tensor a = ramp(first, -2, 0.05, dtype), b = ramp(second, 1, -0.03, dtype);
      check_values(log_cosh(a, b), {a, b},
                   [](const auto& at) { return log_cosh_of(at[0], at[1]); });
      const Tensor w = ramp(second, 0.25, 0.005, dtype);
      for (const Tensors& inputs : {Tensors{w, a, b}, Tensors{a, w, b}, Tensors{b, w, a}})
        check_values(blend(inputs[0], inputs[1], inputs[2]), inputs,
                     [](const auto& at) { return blend_of(at[0], at[1], at[2]); });
    }
  }
  const Tensor view = slice(ramp({1001}, -3, 0.07, DType::f32), 1, 1001);  // begins at any element
  check_values(mish(view), {view}, [](const auto& at) { return mish_of(at[0]); });
}

TEST_CASE("NaN and infinities go through a functor as its arithmetic has it") {
  EBB_SKIP_WITHOUT_KERNELS();
  const float inf = INFINITY;
  const std::vector<float> y = cube(Tensor::from({NAN, inf, -inf, -2.f})).to_vector<float>();
  CHECK(std::isnan(y[0]));
  CHECK(y[1] == inf);
  CHECK(y[2] == -inf);
  CHECK(y[3] == -8);
}

TEST_CASE("results do not depend on the number of threads") {
  EBB_SKIP_WITHOUT_KERNELS();
  const Tensor a = ramp({300, 400}, -2, 0.05, DType::f32), b = ramp({400}, 1, -0.03, DType::f32);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 3}) {
    const Threads here(threads);
    results.push_back(log_cosh(a, b).to_vector<float>());
  }
  CHECK(results[0] == results[1]);
}

TEST_CASE("gradients of functors agree with differences, in two orders") {
  EBB_SKIP_WITHOUT_KERNELS();
  const Tensor x = ramp({7}, -2, 0.6), row = ramp({3}, 0.3, 0.4), column = ramp({4, 1}, -1, 0.3);
  const auto check = [](const char* what, const std::function<Tensor(const Tensors&)>& function,
                        const Tensors& inputs) {
    const GradientCheck result = check_gradient(function, inputs, {.order = 2});
    INFO(what << ": " << result.report);
    CHECK(result);
  };
  check("mish", [](const Tensors& in) { return mish(in[0]); }, {x});
  check("swish", [](const Tensors& in) { return swish(in[0], 0.7); }, {x});
  check("cube", [](const Tensors& in) { return cube(in[0]); }, {x});
  check("log_cosh", [](const Tensors& in) { return log_cosh(in[0], in[1]); }, {row, column});
  check("log_cosh with itself", [](const Tensors& in) { return log_cosh(in[0], in[0] * 2); }, {x});
  check("blend", [](const Tensors& in) { return blend(in[0], in[1], in[2]); },
        {row, column, ramp({4, 3}, 0, 0.1)});
  // The gradient of one input alone.
  check("log_cosh of the first", [&](const Tensors& in) { return log_cosh(in[0], column); }, {row});
  check("log_cosh of the second", [&](const Tensors& in) { return log_cosh(column, in[0]); },
        {row});
}

TEST_CASE("a functor without gradient, and one whose derivatives end, say so") {
  EBB_SKIP_WITHOUT_KERNELS();
  const Tensor x = ramp({3}, -1, 1).with_grad();
  CHECK_ERROR(sum(heaviside(x)).backward(), NotDifferentiable, "[heaviside]");
  const auto third = [&](const Tensor& y) {
    const Tensors first = gradients(sum(y), {x}, {.create_graph = true});
    const Tensors second = gradients(sum(first[0]), {x}, {.create_graph = true});
    return gradients(sum(second[0]), {x});
  };
  CHECK_ERROR(third(mish(x)), NotDifferentiable, "[mish_curve]");
  CHECK(values_of(third(cube(x))[0]) == std::vector<double>{6, 6, 6});
}

TEST_CASE("a graph computes what eager does, bit for bit, and plans what it uses") {
  EBB_SKIP_WITHOUT_KERNELS();
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Graph graph;
    const Tensor a = graph.placeholder("a", dtype, {-1, 5}), b = graph.placeholder("b", dtype, {5});
    const auto both = [](const Tensor& x, const Tensor& y) {
      const Tensor loss = mean(log_cosh(swish(mish(x), 2), blend(y, x, cube(y))));
      const Tensors found = gradients(loss, {x, y});
      return Tensors{loss, found[0], found[1]};
    };
    const Tensors fetches = both(a, b);
    Session session(graph);
    for (const std::int64_t rows : {3, 200}) {
      const Tensor x = ramp({rows, 5}, -2, 0.04, dtype), y = ramp({5}, 0.1, 0.2, dtype);
      const Tensors expected = both(Tensor(x).with_grad(), Tensor(y).with_grad());
      const Tensors found = session.run(fetches, {{a, x}, {b, y}});
      for (std::size_t i = 0; i < found.size(); ++i)
        CHECK(values_of(found[i]) == values_of(expected[i]));
    }
    const memory::Plan plan = graph.plan(fetches, {{a, {200, 5}}, {b, {5}}}, Device::cpu());
    Session alone(graph);
    alone.run(fetches, {{a, ramp({200, 5}, 0, 0.1, dtype)}, {b, ramp({5}, 0, 0.1, dtype)}});
    CHECK(alone.stats().allocated.peak == plan.peak_bytes);
  }
}

TEST_CASE("a twin predicts an eager step with operators of one's own, byte for byte") {
  EBB_SKIP_WITHOUT_KERNELS();
  const auto step = [](const Device& device) {
    const Tensor x = Tensor::full({500, 40}, 1, DType::f32, device).with_grad();
    const Tensor y = Tensor::full({40}, 1, DType::f32, device).with_grad();
    mean(log_cosh(swish(mish(x), 2), blend(y, x, cube(doubled(y))))).backward();
  };
  const Device device = Device::cpu();
  const memory::Prediction prediction = memory::predict(device, step);
  const memory::PeakScope peak(device);
  step(device);
  CHECK(prediction.peak_bytes == peak.bytes());
}

TEST_CASE("an operator works in the memory of a temporary") {
  EBB_SKIP_WITHOUT_KERNELS();
  const Tensor x = Tensor::full({5000}, 1), y = Tensor::full({5000}, 2);
  const memory::PeakScope peak(Device::cpu());
  const std::size_t before = memory::stats(Device::cpu()).allocated.current;
  const Tensor z = mish(log_cosh(cube(x), y));
  CHECK(peak.bytes() - before == 20'480);  // one block
  CHECK(values_of(z)[4999] == Approx(mish_of(log_cosh_of(1, 2))));
}

TEST_CASE("a gradient by one input works in the memory of what it is given") {
  EBB_SKIP_WITHOUT_KERNELS();
  const Tensor x = Tensor::full({5000}, 1), y = Tensor::full({5000}, 2);
  const auto peak = [&](const Tensor& a, const Tensor& b, const Tensor& leaf) {
    const Tensor z = log_cosh(a, b);
    const memory::PeakScope scope(Device::cpu());
    const std::size_t before = memory::stats(Device::cpu()).allocated.current;
    Tensor dx = gradients(sum(z), {leaf})[0];
    return scope.bytes() - before;
  };
  const Tensor leaf = x.detach().with_grad();
  CHECK(peak(leaf, y, leaf) == peak(y, leaf, leaf));
  CHECK(peak(leaf, y, leaf) < 2 * 20'480);  // one block and the scalar 1
}

TEST_CASE("the tape keeps a functor's inputs for its derivatives, not its result") {
  EBB_SKIP_WITHOUT_KERNELS();
  const Tensor x = Tensor::full({5000}, 1).with_grad();
  const std::size_t before = memory::stats(Device::cpu()).allocated.current;
  for (const auto& functor : {mish, cube}) {  // by derivatives, and by a rule with its own keeps
    const Tensor loss = sum(functor(x + 1));
    CHECK(memory::stats(Device::cpu()).allocated.current - before == 20'480 + 512);
  }
}

TEST_CASE("errors name the operator, the shapes and the line") {
  const Tensor x = Tensor::zeros({2, 3}), y = Tensor::zeros({4});
  const auto here = [](int line) { return "custom.cpp:" + std::to_string(line) + ")"; };
  CHECK_ERROR(log_cosh(x, y), ShapeError,
              "[log_cosh] shapes do not broadcast; inputs are f32[2, 3], f32[4] (");
  CHECK_ERROR(log_cosh(x, y), ShapeError, here(__LINE__));
  CHECK_ERROR(blend(x, x, Tensor::zeros({3}, DType::f64)), ShapeError,
              "[blend] takes inputs of one dtype");
  CHECK_ERROR(mish(Tensor::zeros({2}, DType::i32)), ShapeError, "takes f32, f64, f16 or bf16");
  CHECK_ERROR(log_cosh(x, 1.0), Error, "[log_cosh] takes a tensor here, not a number");
  CHECK_ERROR(log_cosh(Tensor(), x), Error, "[log_cosh] an input is a tensor that holds nothing");
  Graph graph;
  const Tensor a = graph.placeholder("a", DType::f32, {-1, 3});
  const Tensor b = graph.placeholder("b", DType::f32, {-1, 1});
  const int line = __LINE__ + 1;
  const Tensor scores = log_cosh(a, b);
  CHECK(scores.shape() == Shape{-1, 3});
  CHECK_ERROR(blend(a, a, graph.placeholder("c", DType::f32, {2})), ShapeError, here(__LINE__));
  Session session(graph);
  CHECK_ERROR(session.run(scores, {{a, x}, {b, Tensor::zeros({5, 1})}}), ShapeError, here(line));
}

TEST_CASE("an operator with kernels of its own runs in both modes, with a gradient") {
  EBB_SKIP_WITHOUT_KERNELS();
  const Tensor x = Tensor::from({1.f, -2.f, 0.5f}).with_grad();
  CHECK(doubled(x).to_vector<float>() == std::vector<float>{2, -4, 1});
  sum(square(doubled(x))).backward();
  CHECK(x.grad().to_vector<float>() == std::vector<float>{8, -16, 4});
  Graph graph;
  const Tensor fed = graph.placeholder("x", DType::f32, {-1});
  const Tensor y = doubled(doubled(fed));
  Session session(graph);
  for (int run = 0; run < 3; ++run)  // on a GPU the second replays what the first has captured
    CHECK(session.run(y, {{fed, x.detach()}}).to_vector<float>() == std::vector<float>{4, -8, 2});
}
