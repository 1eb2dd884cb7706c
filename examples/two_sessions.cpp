// Do two sessions get into each other's way?
//
// No. Each has its own pool with its own limit, and gives it back by itself. Here one trains; the
// other evaluates what the first has learnt, and goes on when the first is closed.
#include <cstdio>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;

void show(const char* moment, const Session& training, const Session& evaluation) {
  const auto reserved = [](const memory::Stats& stats) {
    return memory::figure(stats.reserved.current);
  };
  std::printf("%-26s %14s %14s %14s\n", moment, reserved(training.stats()).c_str(),
              reserved(evaluation.stats()).c_str(),
              reserved(memory::stats(evaluation.device())).c_str());
}

int run(const Device& device) {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 784});
  const Tensor y = graph.placeholder("y", DType::i32, {-1});
  const Parameters params(graph, Seed{7});
  const models::Classifier model(params, 784, 10, {.hidden = 512});
  const Tensor loss = softmax_cross_entropy(model(x), y);
  const Tensor train = optim::Adam({.learning_rate = 1e-4}).minimize(loss, params);

  // The plans tell both sessions' needs beforehand.
  const std::size_t to_train =
      graph.plan({train}, {{x, {512, 784}}, {y, {512}}}, device).reserved_bytes;
  const std::size_t to_evaluate =
      graph.plan({loss}, {{x, {64, 784}}, {y, {64}}}, device).reserved_bytes;
  std::printf("planned: %s to train, %s to evaluate\n\n", memory::figure(to_train).c_str(),
              memory::figure(to_evaluate).c_str());

  // The batch; the smaller one is a part of it and shares its memory.
  const Tensor images = Tensor::full({512, 784}, 0.5, DType::f32, device);
  const Tensor labels = Tensor::zeros({512}, DType::i32, device);
  const Tensor some_images = slice(images, 0, 64), some_labels = slice(labels, 0, 64);

  Session training(graph, {.device = device, .memory_limit = to_train});
  Session evaluation(graph, {.device = device, .memory_limit = to_evaluate});
  std::printf("%-26s %14s %14s %14s\n", "reserved", "training", "evaluation", "device in all");
  show("both are open", training, evaluation);
  training.initialize(params);
  for (int i = 0; i < 3; ++i) training.run(train, {{x, images}, {y, labels}});
  show("one has trained", training, evaluation);
  evaluation.copy_from(training);
  const Feeds some = {{x, some_images}, {y, some_labels}};
  const Tensor before = evaluation.run(loss, some);
  show("the other has evaluated", training, evaluation);
  training.close();
  const Tensor after = evaluation.run(loss, some);
  show("training is closed", training, evaluation);
  evaluation.close();
  show("both are closed", training, evaluation);
  if (device.is_simulated()) return 0;
  const float was = before.item<float>(), is = after.item<float>();
  std::printf("\nThe loss was %.3f before the other was closed and %.3f after.\n",
              static_cast<double>(was), static_cast<double>(is));
  return was == is ? 0 : 1;
}

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "Do two sessions get into each other's way?", run);
}
