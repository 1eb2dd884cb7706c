// An operator of your own, as a functor in a file of its own (custom_operator/mish.cpp).
//
// ebb makes the kernels. Here it is the activation of a classifier of handwritten digits, in both
// modes, with its gradient checked.
#include <cstdio>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"
#include "ebb/examples/custom_operator/mish.h"

using namespace ebb;

struct Classifier {
  models::Dense first, second, out;
  explicit Classifier(const Parameters& p)
      : first(p.scope("first"), 64, 128),
        second(p.scope("second"), 128, 128),
        out(p.scope("out"), 128, 10) {}
  Tensor operator()(const Tensor& x) const { return out(mish(second(mish(first(x))))); }
};

constexpr int kEpochs = 20;
const optim::Adam adam({.learning_rate = optim::cosine(3e-3, {.warm_up = 10, .steps = 900})});

double as_a_graph(const DataSet& training, const DataSet& held_out, const Device& device) {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 64});
  const Tensor y = graph.placeholder("y", DType::i32, {-1});
  const Parameters params(graph, Seed{7});
  const Tensor scores = Classifier(params)(x);
  const Tensor step = adam.minimize(softmax_cross_entropy(scores, y), params);
  Session session(graph, {.device = device});
  session.initialize(params);
  DataLoader batches(training, {.batch = 32, .shuffle = Seed{1}, .device = device});
  for (int epoch = 0; epoch < kEpochs; ++epoch)
    for (auto [bx, by] : batches) session.run(step, {{x, bx}, {y, by}});
  return metrics::accuracy(session.run(scores, {{x, held_out.inputs()}}), held_out.targets());
}

double eagerly(const DataSet& training, const DataSet& held_out, const Device& device) {
  const Parameters params(device, Seed{7});
  const Classifier model(params);
  DataLoader batches(training, {.batch = 32, .shuffle = Seed{1}, .device = device});
  for (int epoch = 0; epoch < kEpochs; ++epoch)
    for (auto [x, y] : batches) adam.minimize(softmax_cross_entropy(model(x), y), params);
  return metrics::accuracy(model(held_out.inputs().to(device)), held_out.targets());
}

int run(const Device& device) {
  const GradientCheck gradient = check_gradient([](const Tensors& in) { return mish(in[0]); },
                                                {Tensor::from({-3.0, -0.5, 0.0, 0.5, 3.0})});
  std::printf("The gradient agrees with differences: %s\n", gradient ? "yes" : "no");

  const auto [training, held_out] =
      DataSet::csv(EBB_EXAMPLES_DATA "/digits.csv", {.label = "digit"})
          .scaled(1.0 / 16)
          .split(0.2, Seed{2});
  const double graph = as_a_graph(training, held_out, device);
  const double eager = eagerly(training, held_out, device);
  std::printf("Digits recognised of those held out: %.1f %% as a graph, %.1f %% eagerly\n",
              100 * graph, 100 * eager);
  return gradient && graph >= 0.97 && eager >= 0.97 ? 0 : 1;
}

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "Trains with an operator of one's own.", run);
}
