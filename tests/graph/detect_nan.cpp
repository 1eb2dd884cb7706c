// DetectNan names the first operator that made a NaN, in both modes.
#include <string>
#include <vector>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/line.h"

namespace ebb::tests {
namespace {

using namespace literals;

const Tensor& bad() {
  static const Tensor x = Tensor::from({{1.f, 2.f, 3.f}, {4.f, 5.f, -1.f}});
  return x;
}

}  // namespace

TEST_CASE("the operator that made a NaN is named with its line and the element") {
  CHECK(log(bad()).elements() == 6);  // nothing is checked without DetectNan
  const DetectNan detect;
  CHECK_ERROR_HERE(log(bad()) + 1, NotANumber,
                   "[log] element [1, 2] of its result f32[2, 3] is NaN, which none of its inputs");
  for (const DType dtype : {DType::f64, DType::f16, DType::bf16})
    CHECK_ERROR(log(cast(bad(), dtype)), NotANumber,
                std::string("its result ") + name(dtype) + "[2, 3] is NaN");
  CHECK_ERROR(sum(log(Tensor::from({-1.f}))), NotANumber, "[log] element [0]");
  CHECK(log(Tensor::zeros({0})).elements() == 0);
}

TEST_CASE("an operator that was given a NaN says so") {
  const Tensor x = Tensor::from({{1.f, 2.f}, {kNaN, 4.f}});
  const Tensor w = Tensor::from({{1.f, 2.f}, {3.f, 4.f}});
  const DetectNan detect;
  CHECK_ERROR(matmul(w, x), NotANumber,
              "[matmul] element [0, 0] of its result f32[2, 2] is NaN, as element [1, 0] of input "
              "1 f32[2, 2] is already");
  CHECK_ERROR(sum(x), NotANumber, "its result f32[] is NaN, as element [1, 0] of input 0");
}

TEST_CASE("an infinity is found on request alone") {
  const auto infinite = [] { return Tensor::from({1.f, 0.f}) / Tensor::from({1.f, 0.f}) * 0; };
  const auto divided = [] { return 1 / Tensor::from({2.f, 0.f}); };
  {
    const DetectNan detect;
    CHECK(divided().to_vector<float>()[1] == kInfinity);
    CHECK_ERROR(infinite(), NotANumber, "[divide]");
    {
      const DetectNan of_infinity({.infinity = true});
      CHECK_ERROR(divided(), NotANumber, "[divide] element [1] of its result f32[2] is not finite");
      CHECK_ERROR(sqrt(Tensor::from({1.f, -1.f})), NotANumber,
                  "[sqrt] element [1] of its result f32[2] is not finite");
    }
    CHECK_NOTHROW(divided());
  }
  CHECK_NOTHROW(infinite());
}

TEST_CASE("a NaN of constants is found in a plan of micro-batches too", "[host]") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 256});
  const Tensor constant = log(full(graph, {256}, -1));
  Tensor h = x * cast(constant > 0, DType::f32);  // which does not pass it on
  for (int i = 0; i < 4; ++i) h = matmul(tanh(h), Tensor::full({256, 256}, 0.01));
  const Tensor loss = mean(square(h));
  for (const bool has_budget : {false, true}) {
    CAPTURE(has_budget);
    SessionOptions options;
    if (has_budget) options.budget = std::size_t{64} << 10;
    Session session(graph, options);
    const DetectNan detect;
    CHECK_ERROR(session.run(loss, {{x, Tensor::full({64, 256}, 0.5)}}), NotANumber, "[log]");
  }
}

TEST_CASE("a gradient that becomes NaN is found in backward") {
  const Tensor w = Tensor::from({4.f, 0.f}).with_grad();
  const int at = __LINE__ + 1;
  const Tensor root = sqrt(w);
  const Tensor loss = sum(root * Tensor::from({1.f, 0.f}));  // 0 / (2 sqrt(0))
  const DetectNan detect;
  CHECK_ERROR(loss.backward(), NotANumber,
              "[divide] element [1] of its result f32[2] is NaN, which none of its inputs is " +
                  line(at) + ", in the gradient of sqrt");
}

TEST_CASE("a NaN is found where it is made, also when that is computed again") {
  const Tensor w = Tensor::from({4.f, -1.f}).with_grad();
  const int at = __LINE__ + 1;
  const Tensor loss = sum(recompute([](const Tensor& x) { return log(x); }, w));
  const DetectNan detect;
  CHECK_ERROR(
      loss.backward(), NotANumber,
      "[log] element [1] of its result f32[2] is NaN, which none of its inputs is " + line(at));
}

TEST_CASE("a far element is found, whatever is copied at once") {
  std::vector<float> values(600'000, 1.f);
  values[599'998] = -1;
  const Tensor x = Tensor::from(values, {600'000});
  const DetectNan detect;
  CHECK_ERROR(log(x), NotANumber, "element [599998] of its result f32[600000]");
}

TEST_CASE("a run is looked through as well, in every plan that it is made of") {
  for (const bool passes : {true, false}) {
    Graph graph;
    const Tensor x = graph.placeholder("x", DType::f32, {-1, 3});
    const int at = __LINE__ + 1;
    const Tensor y = sum(log(x * 2) + 1);
    Session session(graph, {.passes = passes});
    const Feeds good{{x, Tensor::full({2, 3}, 1)}}, feeds{{x, bad()}};
    for (int i = 0; i < 3; ++i) session.run(y, good);  // captured by now, if the device captures
    const int run = __LINE__ + 1;
    const auto looked_through = [&] { return session.run(y, feeds); };
    {
      const DetectNan detect;
      const float right = session.run(y, good).item<float>();
      CHECK_ERROR(looked_through(), NotANumber,
                  "[log] element [1, 2] of its result f32[2, 3] is NaN, which none of its inputs "
                  "is " +
                      line(at) + ", in a run " + line(run));
      CHECK(session.run(y, good).item<float>() == right);
    }
    CHECK(std::isnan(looked_through().item<float>()));
  }
}

TEST_CASE("an operator is looked through that other runs compute with others, and plans know") {
  const auto of = [](const Tensor& x) {
    const Tensor root = log(x * 2);
    return exp(where(isnan(root), 0.0, root) + 1) * root;
  };
  const Tensor good = Tensor::full({5000}, 3), nan = arange(5000, {.dtype = DType::f32}) - 2;
  auto step = compile([&](const Tensor& x) { return where(x > 0, of(x), 0.0); });
  const std::vector<float> right = step(good).to_vector<float>();
  CHECK(std::isfinite(step(nan).to_vector<float>()[0]));
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1}), y = of(x);
  const auto planned = [&] { return graph.plan({y}, {{x, {5000}}}, Device::cpu()).peak_bytes; };
  const std::size_t together = planned();
  {
    const DetectNan detect;
    CHECK_ERROR(step(nan), NotANumber, "[log] element [0] of its result f32[5000] is NaN");
    CHECK(step(good).to_vector<float>() == right);
    for (const Device& device : {Device::cpu(), Device::simulated("cpu", 1_GiB)}) {
      Session session(graph, {.device = device});
      session.run(y, {{x, Tensor::full({5000}, 3, DType::f32, device)}});
      CHECK(session.stats().allocated.peak == planned());
    }
    CHECK(planned() > together);
  }
  CHECK(planned() == together);
  CHECK(std::isfinite(step(nan).to_vector<float>()[0]));
}

TEST_CASE("an update that wrote a NaN has torn what it updated, and no other") {
  Graph graph;
  Parameters parameters(graph);
  const Tensor x = graph.placeholder("x", DType::f32, {});
  const Tensor v = parameters.declare("v", {}, initializers::constant(1));
  const Tensor w = parameters.declare("w", {}, initializers::constant(1));
  const Tensor step = add_assign(w, x);
  Session session(graph);
  session.initialize();
  const Feeds feeds{{x, Tensor::full({}, kNaN)}};
  {
    const DetectNan detect;
    CHECK_ERROR(session.run(step, feeds), NotANumber, "[add_assign] its result f32[] is NaN");
  }
  CHECK(session.value(v).item<float>() == 1);
  CHECK_ERROR(session.value(w), Error, "add_assign");
  session.assign(w, Tensor::full({}, 2));
  CHECK(session.run(w).item<float>() == 2);

  const Tensor eager = Tensor::full({}, 1);
  const Tensor nan = Tensor::full({}, kNaN);
  {
    const DetectNan detect;
    CHECK_ERROR(add_assign(eager, nan), NotANumber, "[add_assign]");
  }
  CHECK_ERROR(eager.item<float>(), Error, "add_assign");
}

}  // namespace ebb::tests
