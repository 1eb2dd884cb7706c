// How do I train with a batch that does not fit?
//
// Accumulate its gradient from parts. The update is the same, the peak as high as for one part.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;

constexpr std::int64_t kBatch = 1024;
const optim::Accumulator accumulate(optim::Sgd({.momentum = 0.9}), {.samples = kBatch});

struct Result {
  std::size_t predicted_bytes, measured_bytes;  // the peak
  std::vector<float> weights;
};

Result as_a_graph(const Device& device, std::int64_t part) {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 256});
  const Parameters params(graph, Seed{7});
  const models::Mlp model(params, {256, 256, 256, 256, 1});
  const Tensor step = accumulate.minimize(mean(square(model(x))), params, rows(x));
  set_seed(Seed{1});
  const Tensor batch = normal({kBatch, 256}, {.device = device});
  Session session(graph, {.device = device});
  session.initialize(params);
  for (std::int64_t i = 0; i < kBatch; i += part)
    session.run(step, {{x, slice(batch, i, i + part)}});
  std::vector<float> weights;
  if (!device.is_simulated()) weights = session.value(params["0.weight"]).to_vector<float>();
  return {graph.plan({step}, {{x, {part, 256}}}, device).peak_bytes, session.stats().allocated.peak,
          weights};
}

Result eagerly(const Device& device, std::int64_t part) {
  std::vector<float> weights;
  const auto train = [&](const Device& here) {
    set_seed(Seed{1});
    const Tensor batch = normal({kBatch, 256}, {.device = here});
    const Parameters params(here, Seed{7});
    const models::Mlp model(params, {256, 256, 256, 256, 1});
    for (std::int64_t i = 0; i < kBatch; i += part) {
      const Tensor x = slice(batch, i, i + part);
      accumulate.minimize(mean(square(model(x))), params, rows(x));
    }
    if (!here.is_simulated()) weights = params["0.weight"].to_vector<float>();
  };
  const memory::Prediction prediction = memory::predict(device, train);
  const memory::PeakScope peak(device);
  train(device);
  return {prediction.peak_bytes, peak.bytes(), weights};
}

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "What if it does not fit?", [](const Device& device) {
    std::printf("%17s %26s %26s\n", "a batch in", "as a graph", "eagerly, with the batch");
    std::printf("%17s %13s %12s %13s %12s\n", "", "planned", "measured", "predicted", "measured");
    std::vector<float> whole;
    float difference = 0;
    for (const std::int64_t rows : {kBatch, kBatch / 4, kBatch / 16, kBatch / 64}) {
      std::printf("%2d parts of %4d:", static_cast<int>(kBatch / rows), static_cast<int>(rows));
      for (const Result& result : {as_a_graph(device, rows), eagerly(device, rows)}) {
        std::printf(" %13s %12s", memory::figure(result.predicted_bytes).c_str(),
                    memory::figure(result.measured_bytes).c_str());
        if (whole.empty()) whole = result.weights;
        for (std::size_t i = 0; i < whole.size(); ++i)
          difference = std::max(difference, std::abs(result.weights[i] - whole[i]));
      }
      std::printf("\n");
    }
    if (device.is_simulated()) return 0;
    std::printf("The weights differ by less than 1e-6: %s\n", difference < 1e-6f ? "yes" : "no");
    return difference < 1e-6f ? 0 : 1;
  });
}
