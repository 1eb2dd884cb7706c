// How do I train on several processes, and what does each take?
//
// A World, the loader's .shard and the optimizer's .world. Start it with mpirun, or alone:
//
//   mpirun -n 4 build/dev/examples/data_parallel
#include <cstdio>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;

// Returns the loss of the last epoch, of all ranks' samples.
double train(const DataSet& digits, const Device& device, int epochs) {
  const distributed::World world;  // within a prediction: the rank that it is for
  DataLoader loader(digits, {.batch = 128, .shuffle = Seed{1}, .device = device, .shard = world});
  const Parameters params(device, Seed{1});
  const models::Mlp model(params, {64, 128, 10});
  const optim::Adam adam({.learning_rate = 1e-3, .world = world});
  double sum = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    sum = 0;
    for (auto [x, y] : loader) {
      const Tensor loss = adam.minimize(softmax_cross_entropy(model(x), y), params);
      sum += loss.item<float>();
    }
  }
  return sum / static_cast<double>(loader.size());
}

void run(const Device& device) {
  const DataSet digits = DataSet::csv(EBB_EXAMPLES_DATA "/digits.csv", {.label = "digit"});
  const distributed::World world;
  // Any machine can predict any rank; here each predicts itself.
  const memory::Prediction predicted = memory::predict(
      device, [&](Device twin) { train(digits, twin, 1); },
      {.values = 0, .world = distributed::World::simulated(world.rank(), world.size())});
  const std::size_t before = memory::stats(device).allocated.current;
  memory::reset_peaks(device);
  const double loss = train(digits, device, 10);
  const std::size_t peak = memory::stats(device).allocated.peak - before;

  const std::size_t mine[] = {predicted.peak_bytes, peak, predicted.sent_bytes};
  const Tensor figures =
      distributed::all_gather(Tensor::from(std::vector<std::int64_t>(mine, mine + 3)), world);
  if (world.rank() > 0) return;
  const std::vector<std::int64_t> all = figures.to_vector<std::int64_t>();
  const auto figure = [&](std::size_t i) {
    return memory::figure(static_cast<std::size_t>(all[i]));
  };
  std::printf("%-6s %16s %16s %18s\n", "rank", "predicted peak", "measured peak",
              "sent in an epoch");
  for (std::size_t i = 0; i < all.size(); i += 3)
    std::printf("%-6zu %16s %16s %18s\n", i / 3, figure(i).c_str(), figure(i + 1).c_str(),
                figure(i + 2).c_str());
  std::printf("loss of the tenth epoch: %.4f\n", loss);
}

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "How do I train on several processes?", run);
}
