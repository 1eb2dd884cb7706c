// Bytes of a plan, and of a session that runs it.
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/graph/models.h"

namespace ebb::tests {
namespace {

struct Result {
  std::vector<float> dx;
  std::size_t planned, measured;
};

Result train_in_blocks(bool recomputes) {
  set_seed(Seed{5});
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 64});
  const Tensor w = Tensor::full({64, 64}, 0.02);
  const auto block = [w](const Tensor& in) {
    return dropout(tanh(square(tanh(matmul(in, w))) + 0.1), 0.25, Phase::training);
  };
  Tensor y = x;
  for (int i = 0; i < 8; ++i) y = recomputes ? recompute(block, y) : block(y);
  const Tensor dx = gradients(mean(y), {x})[0];
  Session session(graph);
  const Tensor value = session.run(dx, {{x, Tensor::full({128, 64}, 0.3)}});
  return {value.to_vector<float>(), graph.plan({dx}, {{x, {128, 64}}}, Device::cpu()).peak_bytes,
          session.stats().allocated.peak};
}

}  // namespace

TEST_CASE("an update runs as soon as its gradient is complete, where that takes fewer bytes") {
  // The MLP 784-512-512-10 at batch 128 with Adam. The peak is at the first layer's backward
  // product: da [128, 512], dw [784, 512], and five blocks of scalars and biases.
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 784});
  const Tensor y = graph.placeholder("y", DType::i32, {-1});
  const Parameters p(graph, Seed{1});
  const models::Dense a(p.scope("a"), 784, 512, Activation::relu);
  const models::Dense b(p.scope("b"), 512, 512, Activation::relu);
  const models::Dense c(p.scope("c"), 512, 10);
  const Tensor train = optim::Adam().minimize(softmax_cross_entropy(c(b(a(x))), y), p);
  const FedShapes shapes = {{x, {128, 784}}, {y, {128}}};
  const memory::Plan plan = graph.plan({train}, shapes, simulated_host());
  CHECK(plan.updates_early);
  CHECK(plan.arena_bytes == 4 * (784 * 512 + 128 * 512) + 5 * 512);
  CHECK(plan.peak_bytes == plan.lower_bound_bytes);
}

TEST_CASE("updates stay where they were written where moving them saves nothing") {
  Graph graph;
  const Parameters p(graph, Seed{1});
  const Tensor w = p.declare("w", {4}, initializers::constant(1));
  const Tensor v = p.declare("v", {4}, initializers::constant(1));
  const Tensor up = assign(w, 3), also = assign(v, 4);
  CHECK_FALSE(graph.plan({up, also}, {}, Device::cpu()).updates_early);
}

TEST_CASE("a session that evaluates holds no moments") {
  const ClassifierGraph model;
  const ClassifierData data(8);
  Session session = model.open();
  session.run(model.loss, {{model.x, data.x}, {model.y, data.y}});
  CHECK(session.memory().optimizer_state_bytes == 0);
  const memory::Plan plan =
      model.graph.plan({model.loss}, {{model.x, {8, 16}}, {model.y, {8}}}, Device::cpu());
  CHECK(plan.optimizer_state_bytes == 0);
  CHECK(plan.peak_bytes == session.stats().allocated.peak);
  CHECK(plan.reserved_bytes == session.stats().reserved.peak);
  session.run(model.train, {{model.x, data.x}, {model.y, data.y}});
  CHECK(session.memory().optimizer_state_bytes == model.plan(8).optimizer_state_bytes);
}

TEST_CASE("recompute in a graph gives the same bits with the planned saving") {
  const Result plain = train_in_blocks(false), again = train_in_blocks(true);
  CHECK(plain.dx == again.dx);
  CHECK(plain.planned == plain.measured);
  CHECK(again.planned == again.measured);
  CHECK(again.planned < plain.planned * 2 / 3);
}

}  // namespace ebb::tests
