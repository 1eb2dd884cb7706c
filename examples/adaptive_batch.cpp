// How do I use what is free, and make room when others need it?
//
// Set two watches. The early one gives up dispensable memory. The later one, still before any
// request is refused, picks a new micro-batch that fits the free memory: the plan says what each
// size takes. The accumulator keeps the batch per update the same throughout.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;
using namespace ebb::literals;

constexpr std::int64_t kBatch = 4096;

struct Model {
  Graph graph;
  Tensor x = graph.placeholder("x", DType::f32, {-1, 256});
  Parameters params{graph, Seed{7}};
  models::Mlp mlp{params, {256, 1024, 10}};
  optim::Accumulator accumulate{optim::Adam(), {.samples = kBatch}};
  Tensor micro_step = accumulate.minimize(mean(square(mlp(x))), params, rows(x));
};

// The largest micro-batch, in steps of 256 rows, that leaves 2 MiB to others.
std::int64_t fitting(const Model& model, const Session& session) {
  const Device& device = session.device();
  for (std::int64_t rows = kBatch; rows > 256; rows -= 256) {
    const memory::Plan plan =
        model.graph.plan({model.micro_step}, {{model.x, {rows, 256}}}, device);
    if (plan.reserved_bytes + 2_MiB <= session.available()) return rows;
  }
  return 256;
}

void run(const Device& device) {
  memory::set_limit(device, 32_MiB);
  const Model model;
  const Tensor batch = Tensor::full({kBatch, 256}, 0.5, DType::f32, device);
  Session session(model.graph, {.device = device});
  session.initialize(model.params);
  const auto train = [&](std::int64_t at, std::int64_t rows) {
    session.run(model.micro_step, {{model.x, slice(batch, at, at + rows)}});
  };
  Tensor dispensable = Tensor::zeros({4, 1 << 20}, DType::u8, device), guest;
  const memory::Watch early =
      memory::on_threshold(device, memory::Limit::fraction(0.8), [&](const memory::Pressure& now) {
        std::printf("  early: %s are allocated\n", memory::figure(now.allocated_bytes).c_str());
        dispensable = {};
        memory::release_cached(device);
      });
  bool refit = true;
  const memory::Watch late = memory::on_pressure(device, [&](const memory::Pressure& now) {
    std::printf("  late: %s are missing\n", memory::figure(now.missing_bytes).c_str());
    refit = true;
  });
  try {
    train(0, kBatch);
  } catch (const OutOfMemory& error) {
    std::printf("4096 rows: refused; %s\n", error.facts().hints.at(0).c_str());
  }
  for (int update = 1; update <= 3; ++update) {
    for (std::int64_t at = 0, rows = 0, most = 0; at < kBatch; at += rows) {
      if (std::exchange(refit, false) || at == 0) most = fitting(model, session);
      rows = std::min(most, kBatch - at);
      train(at, rows);
      std::printf("update %d: %4d rows\n", update, static_cast<int>(rows));
      if (update == 2 && at == 0) guest = Tensor::zeros({12, 1 << 20}, DType::u8, device);
    }
    guest = {};
    memory::release_cached(device);
  }
}

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "How do I use what is free, and make room?", run);
}
