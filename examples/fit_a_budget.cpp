// How do I train what does not fit?
//
// Give a plan or a session a budget. Its nodes run in another order, values are computed again in
// place of being kept, or the batch is cut into micro-batches: whatever is estimated to take least
// time.
#include <cstdio>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;

constexpr std::int64_t kRows = 1024, kWidth = 128;
constexpr int kLayers = 24;

void run(const Device& device) {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, kWidth});
  const Parameters params(graph, Seed{7});
  Tensor y = x;
  for (int i = 0; i < kLayers; ++i)
    y = gelu(models::Dense(params.scope("layer" + std::to_string(i)), kWidth, kWidth)(y));
  const Tensor train = optim::Adam().minimize(mean(square(y - x)), params);

  const FedShapes shapes{{x, {kRows, kWidth}}};
  const std::size_t most = graph.plan({train}, shapes, device).reserved_bytes;
  const std::size_t least = graph.least_budget({train}, shapes, device);
  const Tensor rows = uniform({kRows, kWidth}, {.device = device});
  std::printf("budget       reserved  nodes run again  micro-batches  more products  loss\n");
  for (const std::size_t budget : {most, most - (most - least) / 4, (most + least) / 2, least}) {
    const memory::Plan plan = graph.plan({train}, shapes, device, {.budget = budget});
    Session session(graph, {.device = device, .budget = budget, .seed = Seed{1}});
    session.initialize(params);
    session.run(train, {{x, rows}});
    const float loss = session.run(train, {{x, rows}}).item<float>();
    std::printf("%-10s %10s %16zu %14zu %12.1f %% %6.4f\n", memory::figure(budget).c_str(),
                memory::figure(session.stats().reserved.peak).c_str(), plan.repeated_nodes,
                plan.micro_batches,
                100 * static_cast<double>(plan.extra_work.products) /
                    static_cast<double>(plan.work.products - plan.extra_work.products),
                static_cast<double>(loss));
  }
  try {
    graph.plan({train}, shapes, device, {.budget = least - 1});
  } catch (const Error& error) {
    std::printf("one byte less: refused\n");
  }
}

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "How do I train what does not fit?", run);
}
