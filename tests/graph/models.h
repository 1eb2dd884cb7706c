// A small classifier as a graph, for tests of sessions.
#pragma once
#include <random>

#include "ebb/ebb.h"
#include "ebb/tests/device/host_kernel.h"

namespace ebb::tests {

struct ClassifierGraph {
  explicit ClassifierGraph(double dropped = 0)
      : x(graph.placeholder("x", DType::f32, {-1, 16})),
        y(graph.placeholder("y", DType::i32, {-1})),
        parameters(graph, Seed{7}),
        hidden(parameters.scope("hidden"), 16, 32, Activation::relu),
        out(parameters.scope("out"), 32, 4),
        scores(out(dropout(hidden(x), dropped, Phase::training))),
        loss(softmax_cross_entropy(scores, y)),
        train(optim::Adam({.learning_rate = 1e-2}).minimize(loss, parameters)) {}

  memory::Plan plan(std::int64_t rows, const Device& device = Device::cpu()) const {
    return graph.plan({train}, {{x, {rows, 16}}, {y, {rows}}}, device);
  }

  // An initialized session.
  Session open(const SessionOptions& options = {}) const {
    Session session(graph, options);
    session.initialize(parameters);
    return session;
  }

  Graph graph;
  Tensor x, y;
  Parameters parameters;
  models::Dense hidden, out;
  Tensor scores, loss, train;
};

struct ClassifierData {
  explicit ClassifierData(std::int64_t rows, const Device& device = Device::cpu()) {
    std::mt19937 random(3);
    std::vector<float> values(static_cast<std::size_t>(rows * 16));
    for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(rows));
    for (std::int32_t& label : labels) label = static_cast<std::int32_t>(random() % 4);
    x = Tensor::from(values, {rows, 16}, device);
    y = Tensor::from(labels, {rows}, device);
  }
  Tensor x, y;
};

inline Feeds feeds(const ClassifierGraph& model, const ClassifierData& data) {
  return {{model.x, data.x}, {model.y, data.y}};
}

// Reserved bytes that are left once the cache is released.
inline std::size_t reserved(const Device& device) {
  memory::release_cached(device);
  return memory::stats(device).reserved.current;
}

// An operator on x that fails in a run.
inline Tensor failing(const Tensor& x) {
  static const OpDef op{.name = "failing",
                        .infer = [](Inference& i) { i.output(DType::f32, i.inputs[0].shape); },
                        .stateful = true,
                        .cpu = {always_fails},
                        .cuda = copied<always_fails>};
  return apply_one(op, {x}, {}, CallSite::here());
}

}  // namespace ebb::tests
