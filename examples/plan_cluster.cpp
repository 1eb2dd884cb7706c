// Plans the training of a GPT-2 on 1 to 1,024 ranks: what each takes, by which sharding it fits,
// and about how long a step takes.
#include <cmath>
#include <cstdio>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;

constexpr int kBatch = 1024, kLength = 1024, kTokens = 50257, kWidth = 768, kLayers = 12;

constexpr std::pair<const char*, distributed::Sharding> kWays[] = {
    {"nothing", distributed::Sharding::none},
    {"optimizer state", distributed::Sharding::optimizer_state},
    {"gradients", distributed::Sharding::gradients},
    {"parameters", distributed::Sharding::parameters}};

Tensor block(const Tensor& x, const Parameters& p) {
  const models::MultiHeadAttention attention(p.scope("attention"), kWidth,
                                             {.heads = kWidth / 64, .fused_qkv = true});
  const models::Mlp mlp(p.scope("mlp"), {kWidth, 4 * kWidth, kWidth},
                        {.activation = Activation::gelu_tanh});
  const Tensor y = x + attention(models::LayerNorm(p.scope("norm_1"), kWidth)(x), {.causal = true});
  return y + mlp(models::LayerNorm(p.scope("norm_2"), kWidth)(y));
}

// A step of the fullest rank: each of 2^k ranks has as many rows, and rank 0 the largest share of
// whatever is sharded.
memory::Plan plan_step(const Device& device, int ranks, distributed::Sharding sharding) {
  Graph graph;
  const auto world = distributed::World::simulated(0, ranks, {.sharding = sharding});
  const Parameters params(graph, {}, {.world = world});
  const models::Embedding token(params.scope("token"), kTokens, kWidth);
  const models::Embedding position(params.scope("position"), kLength, kWidth);
  const Tensor tokens = graph.placeholder("tokens", DType::i32, {-1, kLength});
  const Tensor next = graph.placeholder("next", DType::i32, {-1, kLength});
  Tensor x = token(tokens) + position.weight();
  for (int i = 0; i < kLayers; ++i) x = block(x, params.scope("block." + std::to_string(i)));
  x = models::LayerNorm(params.scope("norm"), kWidth)(x);
  x = matmul(x, token.weight(), {.transpose_b = true});
  const optim::AdamW adam({.world = world});
  const Tensor train = adam.minimize(softmax_cross_entropy(x, next), params);
  const FedShapes shapes{{tokens, {kBatch / ranks, kLength}}, {next, {kBatch / ranks, kLength}}};
  return graph.plan({train}, shapes, device);
}

int main(int argc, char** argv) {
  double flops = 4e12, link = 12.5e9, latency = 5e-6;
  // Estimates a step's seconds. A message of n bytes takes latency + n / link. Sums by a ring are
  // 2 (N - 1) messages of n / N bytes (Patarasuk & Yuan, J. Parallel Distrib. Comput. 69, 2009), by
  // a tree 2 log2 N with as many bytes in all (recursive halving and doubling: Thakur, Rabenseifner
  // & Gropp, Int. J. High Perform. Comput. Appl. 19, 2005).
  const auto print = [&](const memory::Plan& step, int ranks, bool fits) {
    const double computes = 2 * static_cast<double>(step.work.products) / flops;
    const double moves = static_cast<double>(step.sent_bytes) / link;
    const double waits = static_cast<double>(step.sent_messages) * latency;
    const double tree = moves + (ranks > 1 ? waits * std::log2(ranks) / (ranks - 1) : 0);
    std::printf("%5d %10s  %-4s %12s %10.2f %8.2f %8.2f %8.2f\n", ranks,
                memory::figure(step.peak_bytes).c_str(), fits ? "yes" : "no",
                memory::figure(step.sent_bytes).c_str(), computes, tree, moves + waits,
                computes + moves + waits);
  };
  const auto run = [&](const Device& device) {
    const std::size_t capacity = device.runtime().capacity_bytes();
    for (const auto& [name, sharding] : kWays) {
      std::printf("sharded: %s\n%5s %10s  %-4s %12s %10s %8s %8s %8s\n", name, "ranks", "peak",
                  "fits", "sent", "computes", "tree", "ring", "step");
      for (int ranks = 1; ranks <= kBatch; ranks *= 2) {
        const memory::Plan step = plan_step(device, ranks, sharding);
        print(step, ranks, step.reserved_bytes <= capacity);
      }
    }
    std::printf(
        "Seconds are estimates from %g FLOP/s, %g byte/s and %g s a message. A step\n"
        "computes, then sends by the ring.\n",
        flops, link, latency);
  };
  examples::add_positive("--flops", flops, "FLOP/s of a rank");
  examples::add_positive("--link", link, "Bytes a second that a rank sends");
  examples::add_positive("--latency", latency, "Seconds that a message takes besides");
  return examples::run_example(argc, argv, "What does a step of GPT-2 take on a cluster?", run);
}
