// Sessions that are given, or are themselves, what cannot be used.
#include <thread>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"

using namespace ebb;

namespace {
struct Doubling {
  Doubling() : x(graph.placeholder("x", DType::f32, {2})), y(x * 2) {}
  Graph graph;
  Tensor x, y;
};
}  // namespace

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
  CHECK(from.closed());  // NOLINT: what a moved-from session says is the point
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

  from = std::move(to);  // and can be used again once it is given one
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
