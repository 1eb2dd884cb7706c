// Training takes the predicted bytes: eager the figures of the device's twin, a graph its plan's.
#include <functional>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/eager/bytes.h"

namespace ebb::tests {
namespace {

struct PredictedStep {
  const char* name;
  bool accumulates;
  std::function<Tensor(const Tensor& loss, const Tensor& y, const Parameters&)> step;
  std::function<void(const Parameters&)> finish = [](const Parameters&) {};
};

std::vector<PredictedStep> predicted_steps() {
  const optim::Sgd sgd({.momentum = 0.9});
  const optim::Adam adam({.clip = {.global_norm = 1}});
  const optim::Rmsprop rmsprop({.momentum = 0.9, .centered = true, .clip = {.norm = 1}});
  const optim::Adagrad adagrad({.clip = {.value = 1}});
  const optim::Lion lion({.weight_decay = 0.1, .decay_only = optim::is_matrix});
  const optim::Accumulator accumulator(adam, {.samples = 40});
  return {{"sgd", false, [=](auto& l, auto&, auto& p) { return sgd.minimize(l, p); }},
          {"adam", false, [=](auto& l, auto&, auto& p) { return adam.minimize(l, p); }},
          {"rmsprop", false, [=](auto& l, auto&, auto& p) { return rmsprop.minimize(l, p); }},
          {"adagrad", false, [=](auto& l, auto&, auto& p) { return adagrad.minimize(l, p); }},
          {"lion", false, [=](auto& l, auto&, auto& p) { return lion.minimize(l, p); }},
          {"accumulator", true,
           [=](auto& l, auto& y, auto& p) { return accumulator.minimize(l, p, rows(y)); },
           [=](auto& p) { accumulator.flush(p); }}};
}

}  // namespace

TEST_CASE("eager training takes what it takes on the device's twin", "[optim]") {
  for (const PredictedStep& method : predicted_steps())
    for (const DType dtype : {DType::f32, DType::bf16}) {
      CAPTURE(method.name, name(dtype));
      const auto program = [&](const Device& device) {
        const Parameters parameters(device, Seed{1}, dtype);
        const models::Forecaster model(parameters, 2, {.hidden = 20, .layers = 2, .dropout = 0.1});
        for (const std::int64_t batch : {16, 16, 8}) {
          const Tensor x = Tensor::full({batch, 12, 2}, 0.5, dtype, device);
          const Tensor y = Tensor::full({batch, 1}, 0.25, dtype, device);
          method.step(mse(model(x, Phase::training), y), y, parameters);
        }
        method.finish(parameters);
      };
      const memory::Prediction predicted = memory::predict(Device::cpu(), program);
      const Bytes bytes;
      program(Device::cpu());
      CHECK(bytes.now() == 0);
      CHECK(bytes.peak() == predicted.peak_bytes);
      CHECK(predicted.by_category[static_cast<std::size_t>(memory::Category::optimizer_state)] > 0);
    }
}

TEST_CASE("a graph's step takes what its plan says", "[optim]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  for (const PredictedStep& method : predicted_steps()) {
    CAPTURE(method.name, name(dtype));
    Graph graph;
    const Tensor x = graph.placeholder("x", dtype, {-1, 12});
    const Tensor y = graph.placeholder("y", DType::i32, {-1});
    const Parameters parameters(graph, Seed{1}, dtype);
    const models::Classifier model(parameters, 12, 5, {.hidden = 64, .layers = 2});
    const Tensor train = method.step(softmax_cross_entropy(model(x), y), y, parameters);
    const memory::Plan plan = graph.plan({train}, {{x, {32, 12}}, {y, {32}}}, Device::cpu());
    Session session(graph);
    session.initialize(parameters);
    for (int i = 0; i < 3; ++i)
      session.run(
          train, {{x, Tensor::full({32, 12}, 0.5, dtype)}, {y, Tensor::full({32}, 1, DType::i32)}});
    CHECK(session.stats().allocated.peak == plan.peak_bytes);
    CHECK(plan.lower_bound_bytes <= plan.peak_bytes);
  }
}

TEST_CASE("a rule keeps its slots and a count, and a step in place takes the rate's scalar alone",
          "[optim][memory]") {
  struct Kept {
    optim::Optimizer optimizer;
    std::size_t slots;
  };
  const std::vector<Kept> all = {
      {optim::Sgd(), 0},
      {optim::Sgd({.momentum = 0.9, .nesterov = true, .clip = {.value = 1}}), 1},
      {optim::Adam(), 2},
      {optim::AdamW({.decay_only = optim::is_matrix}), 2},
      {optim::Rmsprop(), 1},
      {optim::Rmsprop({.momentum = 0.9}), 2},
      {optim::Rmsprop({.centered = true}), 2},
      {optim::Rmsprop({.momentum = 0.9, .centered = true}), 3},
      {optim::Adagrad({.learning_rate = optim::linear_decay(0.1)}), 1},
      {optim::Lion(), 1}};
  constexpr std::size_t kFloats = 4 * 4096, kScalar = 512;
  const auto state = [] { return Bytes().of(memory::Category::optimizer_state); };
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const auto& [optimizer, slots] : all) {
      CAPTURE(optimizer.rule().name(), slots, name(dtype));
      const Parameters p(Device::cpu(), Seed{1}, dtype);
      p.declare("x", {4096}, initializers::zeros());
      const Tensor gradient = Tensor::full({4096}, 1, dtype);
      const std::size_t before = state();
      optimizer.apply({gradient}, p);
      CHECK(state() - before == slots * kFloats + kScalar);
      const Bytes step;
      optimizer.apply({gradient}, p);
      CHECK(step.peak() == kScalar);
      CHECK(step.now() == 0);
    }
}

}  // namespace ebb::tests
