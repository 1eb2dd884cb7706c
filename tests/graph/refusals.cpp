// Uses that a graph and its sessions refuse, and their state afterwards.
#include <string>

#include "ebb/core/ops/shape_rules.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/host_kernel.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/graph/models.h"

namespace ebb::tests {
namespace {

// The error of extending a graph inside its own run; a kernel has no other way to report it.
Graph* extended = nullptr;
std::string refusal;

constexpr auto run_extending = [](const KernelContext& context) -> Status {
  *context.outputs[0].as<float>() = *context.inputs[0].as<float>();
  try {
    extended->placeholder("late", DType::f32, {});
  } catch (const Error& error) {
    refusal = error.what();
  }
  return {};
};
const OpDef extending_op{.name = "extending",
                         .infer = detail::same_shape,
                         .cpu = {run_extending},
                         .cuda = tests::copied<run_extending>};

struct Doubling {
  Doubling() : x(graph.placeholder("x", DType::f32, {2})), y(x * 2) {}
  Graph graph;
  Tensor x, y;
};

}  // namespace

TEST_CASE("a graph refuses to be extended while a session runs it, and can be afterwards") {
  if (!on_host()) return;  // elsewhere a kernel may run after its run has returned
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {});
  const Tensor y = detail::apply_to(extending_op, x);
  Session session(graph);
  extended = &graph;
  refusal.clear();
  const Feeds feeds = {{x, Tensor::full({}, 3)}};
  CHECK(session.run(y, feeds).item<float>() == 3);
  CHECK(refusal.find("cannot be extended while a session runs it") != std::string::npos);
  const Tensor late = graph.placeholder("late", DType::f32, {});
  CHECK(session.run(late, {{late, Tensor::full({}, 4)}}).item<float>() == 4);
}

TEST_CASE("a session refuses a graph that captured a tensor of another device") {
  const Device twin = Device::cpu().twin();
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {2});
  const std::string here = "refusals.cpp:" + std::to_string(__LINE__ + 1);
  const Tensor y = x * Tensor::zeros({2}, DType::f32, twin);
  const Feeds feeds = {{x, Tensor::from({1.f, 2.f})}};
  Session session(graph);
  CHECK_ERROR(session.run(y, feeds), Error, "captured a tensor on");
  CHECK_ERROR(session.run(y, feeds), Error, here);
  CHECK(session.run(x + 1, feeds).item<float>({0}) == 2);  // a fetch that does not read it runs
  Session simulated(graph, {.device = twin});
  CHECK(simulated.run(y, feeds).shape() == Shape{2});
}

TEST_CASE("a session that is assigned over holds nothing, though its prepared step lives") {
  const ClassifierGraph model;
  const ClassifierData data(4);
  const Bytes bytes;
  Session session = model.open();
  auto step = session.prepare(model.loss, {model.x, model.y});
  step(data.x, data.y);
  CHECK(bytes.now() > 0);
  session = Session(model.graph);
  CHECK(bytes.now() == 0);
  CHECK_ERROR(step(data.x, data.y), SessionClosed, "closed");
  session.initialize(model.parameters);  // the reassigned session is open
  CHECK(session.run(model.loss, {{model.x, data.x}, {model.y, data.y}}).item<float>() > 0);
}

TEST_CASE("[1, 3] + [?, 3] is [?, 3] on either side, and a bias's gradient is the sum over rows") {
  Graph graph;
  const Parameters parameters(graph);
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 3});
  const Tensor bias = parameters.declare("bias", {1, 3}, initializers::constant(0.5));
  Session session(graph);
  session.initialize();
  for (const Tensor& y : {x + bias, bias + x}) {
    CHECK(y.shape() == Shape{kOpen, 3});
    const Tensor gradient = gradients(sum(square(y)), {bias})[0];
    for (const std::int64_t rows : {0, 1, 4}) {
      std::vector<float> values, sums(3), results;
      for (std::int64_t i = 0; i < 3 * rows; ++i) {
        values.push_back(static_cast<float>(i));
        results.push_back(static_cast<float>(i) + 0.5f);
        sums[static_cast<std::size_t>(i % 3)] += 2 * results.back();
      }
      const auto [result, summed] =
          session.run({y, gradient}, {{x, Tensor::from(values, {rows, 3})}});
      CHECK(result.shape() == Shape{rows, 3});
      CHECK(result.to_vector<float>() == results);
      CHECK(summed.shape() == Shape{1, 3});
      CHECK(summed.to_vector<float>() == sums);
    }
  }
}

TEST_CASE("a session takes no value from a simulated tensor, unless it is simulated itself") {
  Graph graph;
  const Parameters parameters(graph);
  const Tensor w = parameters.declare("w", {3}, initializers::constant(1));
  const Device twin = Device::simulated("cpu", 1 << 20);
  Session session(graph);
  session.initialize();
  CHECK_ERROR(session.assign(w, Tensor::zeros({3}, DType::f32, twin)), SimulatedRead,
              "'w' cannot be set to f32[3] on sim:cpu");
  CHECK(session.value(w).to_vector<float>() == std::vector<float>{1, 1, 1});
  Session simulated(graph, {.device = twin});
  simulated.assign(w, Tensor::zeros({3}, DType::f32, twin));
  simulated.assign(w, Tensor::zeros({3}));
  CHECK(simulated.value(w).shape() == Shape{3});
}

TEST_CASE("a session that was moved from is closed, whatever is asked of it") {
  const Doubling model;
  const Feeds feeds{{model.x, Tensor::full({2}, 3)}};
  Session from(model.graph);
  Session to(std::move(from));
  CHECK(from.closed());  // NOLINT: moved from on purpose
  CHECK_FALSE(to.closed());
  CHECK(from.close().returned_bytes == 0);
  const char* why = "moved from";
  CHECK_ERROR(from.run(model.y, feeds), SessionClosed, why);
  CHECK_ERROR(from.run(Tensors{model.y}, feeds), SessionClosed, why);
  CHECK_ERROR(from.run({model.y, model.y}, feeds), SessionClosed, why);
  CHECK_ERROR(from.prepare(model.y, {model.x}), SessionClosed, why);
  CHECK_ERROR(from.initialize(), SessionClosed, why);
  CHECK_ERROR(from.initialize(Parameters(model.graph)), SessionClosed, why);
  CHECK_ERROR(from.value(model.y), SessionClosed, why);
  CHECK_ERROR(from.assign(model.y, Tensor::zeros({2})), SessionClosed, why);
  CHECK_ERROR(from.save("moved.safetensors"), SessionClosed, why);
  CHECK_ERROR(from.restore("moved.safetensors"), SessionClosed, why);
  CHECK_ERROR(from.memory(), SessionClosed, why);
  CHECK_ERROR(from.stats(), SessionClosed, why);
  CHECK_ERROR(from.set_memory_limit(1), SessionClosed, why);
  CHECK_ERROR(from.plans(), SessionClosed, why);
  CHECK_ERROR(from.device(), SessionClosed, why);
  CHECK(to.run(model.y, feeds).to_vector<float>() == std::vector<float>{6, 6});

  from = std::move(to);  // it can be used again after an assignment
  CHECK(from.run(model.y, feeds).to_vector<float>() == std::vector<float>{6, 6});
  CHECK(to.closed());  // NOLINT
  Session& itself = from;
  from = std::move(itself);
  CHECK_FALSE(from.closed());
}

TEST_CASE("a prepared step that was moved from says so") {
  const Doubling model;
  Session session(model.graph);
  PreparedStep from = session.prepare(model.y, {model.x});
  PreparedStep to = std::move(from);
  CHECK_ERROR(from(Tensor::full({2}, 3)), Error, "[prepare] this step was moved from");  // NOLINT
  CHECK(to(Tensor::full({2}, 3)).to_vector<float>() == std::vector<float>{6, 6});
}

}  // namespace ebb::tests
