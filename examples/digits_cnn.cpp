// Tells handwritten digits apart with a convolutional network, as a graph.
//
// Running statistics, dropout and the learning-rate schedule are nodes like any other: one fetch is
// one step, and its memory is known before the first.
#include <cstdio>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;

constexpr std::int64_t kBatch = 32, kEpochs = 30;

struct Network {
  models::Conv2d near, far;
  models::BatchNorm near_norm, far_norm;
  models::Dense hidden, out;

  explicit Network(const Parameters& p)
      : near(p.scope("near"), 1, 16, {.kernel = 3, .padding = 1}),
        far(p.scope("far"), 16, 32, {.kernel = 3, .padding = 1}),
        near_norm(p.scope("near_norm"), 16),
        far_norm(p.scope("far_norm"), 32),
        hidden(p.scope("hidden"), 32 * 4 * 4, 64, Activation::relu),
        out(p.scope("out"), 64, 10) {}

  // pixels [batch, 64] to scores [batch, 10].
  Tensor operator()(const Tensor& pixels, Phase phase) const {
    Tensor x = reshape(pixels, {-1, 1, 8, 8});
    x = relu(near_norm(near(x), phase));
    x = max_pool2d(relu(far_norm(far(x), phase)));
    x = dropout(flatten(x), 0.25, phase);
    return out(dropout(hidden(x), 0.25, phase));
  }
};

void run(const examples::Arguments& told) {
  const DataSet digits =
      DataSet::csv(EBB_EXAMPLES_DATA "/digits.csv", {.label = "digit"}).scaled(1.0 / 16);
  const auto [training, held_out] = digits.split(0.2, Seed{1});
  DataLoader batches(
      training, {.batch = kBatch, .shuffle = Seed{2}, .drop_last = true, .device = told.device});

  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 64});
  const Tensor y = graph.placeholder("y", DType::i32, {-1});
  const Parameters params(graph, Seed{7});
  const Network network(params);
  const Tensor loss =
      softmax_cross_entropy(network(x, Phase::training), y, {.label_smoothing = 0.05});
  const optim::AdamW adam(
      {.learning_rate = optim::cosine(2e-3, {.warm_up = 80, .steps = kEpochs * batches.size()}),
       .weight_decay = 0.05,
       .decay_only = optim::is_matrix});
  const Tensor train = adam.minimize(loss, params);
  const Tensor scores = network(x, Phase::inference);
  const memory::Plan plan = graph.plan({train}, {{x, {kBatch, 64}}, {y, {kBatch}}}, told.device);

  if (told.device.is_simulated()) return examples::print_peak(plan.peak_bytes);
  Session session(graph, {.device = told.device, .seed = Seed{3}});
  session.initialize(params);
  if (!told.resume.empty()) session.restore(told.resume, batches);
  auto step = session.prepare(train, {x, y});
  const std::int64_t left = kEpochs - batches.pass();
  Progress progress(left * batches.size(), {.label = "training"});
  while (batches.pass() < kEpochs) {
    for (const auto& [pixels, labels] : batches) progress.step(step(pixels, labels).item<float>());
    if (!told.save.empty()) session.save(told.save, batches);
  }
  progress.finish();
  if (left > 0) examples::print_peak(plan.peak_bytes, session.stats().allocated.peak);

  const Tensor guesses = session.run(scores, {{x, held_out.inputs()}});
  const double accuracy = metrics::accuracy(guesses, held_out.targets());
  std::printf("held out: %.2f %% of %d digits\n", 100 * accuracy,
              static_cast<int>(held_out.size()));
}

int main(int argc, char** argv) {
  return examples::train_example(argc, argv, "Tells digits apart by convolutions.", run);
}
