// What is left when a training step runs out of memory?
//
// Everything from before it. The step's own memory is free again; parameters, moments and counts
// are bit for bit the same; dropout draws the same numbers again. A smaller step runs at once, and
// has the loss that it would have had.
#include <cstdio>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;
using namespace ebb::literals;

struct Training {
  Parameters params;
  models::Dense hidden{params.scope("hidden"), 256, 1024, Activation::relu};
  models::Dense out{params.scope("out"), 1024, 10};
  optim::Adam adam{{.learning_rate = 1e-4}};

  // attempt() marks where the step begins: if it throws, the step has left no trace.
  float step(std::int64_t rows) {
    return attempt([&] {
      const Tensor x = Tensor::full({rows, 256}, 0.5, DType::f32, params.device());
      const Tensor y = Tensor::zeros({rows}, DType::i32, params.device());
      const Tensor h = dropout(hidden(x), 0.5, Phase::training);
      const Tensor loss = adam.minimize(softmax_cross_entropy(out(h), y), params);
      return loss.device().is_simulated() ? 0 : loss.item<float>();
    });
  }
};

int run(const Device& device) {
  float expected = 0;  // loss of a training without any refusal
  {
    set_seed(Seed{1});
    Training training{Parameters(device, Seed{7})};
    for (int i = 0; i < 3; ++i) expected = training.step(512);
  }

  memory::set_limit(device, 16_MiB);
  set_seed(Seed{1});
  Training training{Parameters(device, Seed{7})};
  for (int i = 0; i < 2; ++i) training.step(512);
  const std::size_t before = memory::stats(device).allocated.current;
  const bool has_values = !device.is_simulated();
  const Tensor weight = training.params["hidden.weight"];
  const auto weights = has_values ? weight.to_vector<float>() : std::vector<float>();
  try {
    training.step(4096);
  } catch (const OutOfMemory& error) {
    std::printf("%s\n\n", error.what());
  }
  const std::size_t after = memory::stats(device).allocated.current;
  std::printf("held before the refused step: %s, after: %s\n", memory::exact_figure(before).c_str(),
              memory::exact_figure(after).c_str());
  if (!has_values) return before == after ? 0 : 1;
  const bool unmoved = weight.to_vector<float>() == weights;
  std::printf("its weights: %s\n", unmoved ? "bit for bit what they were" : "changed");
  const float loss = training.step(512);
  std::printf("the next step: loss %.4f; had nothing been refused: %.4f\n",
              static_cast<double>(loss), static_cast<double>(expected));
  return unmoved && before == after && loss == expected ? 0 : 1;
}

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "What is left when memory runs out?", run);
}
