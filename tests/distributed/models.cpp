#include "ebb/tests/bytes.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/distributed/ranks.h"

namespace ebb::tests {
namespace {

constexpr std::int64_t kTime = 6, kCodes = 11, kWidth = 8;

// Codes [batch, time] to a loss.
using Loss = std::function<Tensor(const Tensor& codes)>;

Loss lstm(const Parameters& p) {
  const models::SequenceClassifier model(
      p, kWidth, kCodes,
      {.vocabulary = kCodes, .lstm = {.hidden = kWidth, .layers = 2, .bidirectional = true}});
  return
      [=](const Tensor& codes) { return softmax_cross_entropy(model(codes), select(codes, 1, 0)); };
}

// Of one layer, which no other one follows.
Loss table(const Parameters& p) {
  const models::Embedding rows(p, kCodes, kCodes);
  return [=](const Tensor& codes) { return softmax_cross_entropy(rows(codes), codes); };
}

// As GPT-2: a table that is its head too, and blocks whose values are computed again.
Loss gpt(const Parameters& p) {
  struct Block {
    models::LayerNorm before_attention, before_mlp;
    models::MultiHeadAttention attention;
    models::Mlp mlp;
    explicit Block(const Parameters& q)
        : before_attention(q.scope("before_attention"), kWidth),
          before_mlp(q.scope("before_mlp"), kWidth),
          attention(q.scope("attention"), kWidth, {.heads = 2, .fused_qkv = true}),
          mlp(q.scope("mlp"), {kWidth, 4 * kWidth, kWidth}) {}
    Tensor operator()(Tensor x) const {
      x += dropout(attention(before_attention(x), {.causal = true}), 0.2, Phase::training);
      return x + mlp(before_mlp(x));
    }
  };
  const models::Embedding table(p.scope("table"), kCodes, kWidth);
  const Block first(p.scope("first")), second(p.scope("second"));
  return [=](const Tensor& codes) {
    const Tensor x = recompute([=](const Tensor& y) { return second(first(y)); }, table(codes));
    return softmax_cross_entropy(matmul(x, table.weight(), {.transpose_b = true}), codes);
  };
}

struct Model {
  const char* name;
  Loss (*make)(const Parameters&);
  DType dtype;
};
constexpr Model kModels[] = {{"lstm", lstm, DType::f32},
                             {"table", table, DType::f32},
                             {"gpt", gpt, DType::f32},
                             {"gpt in bf16", gpt, DType::bf16}};

std::vector<float> train(const World& world, const Model& of, InMode::Kind mode) {
  set_seed({4});
  InMode in(mode, of.dtype, {1}, {}, world);
  const Loss loss = of.make(in.parameters);
  const optim::AdamW adam({.learning_rate = 0.01, .clip = {.norm = 1}, .world = world});
  const auto step = in.function({{DType::i32, {-1, kTime}}}, [&](const Tensors& t) -> Tensors {
    return {adam.minimize(loss(t[0]), in.parameters)};
  });
  std::vector<std::int32_t> codes;
  for (std::int32_t i = 0; i < 10 * kTime; ++i) codes.push_back(i * i % kCodes);
  DataLoader loader(DataSet::of({Tensor::from(codes, {10, kTime})}), {.batch = 8, .shard = world});
  std::vector<float> losses;
  for (int pass = 0; pass < 2; ++pass)
    for (const Batch& batch : loader)
      losses.push_back(cast(step({batch.input})[0], DType::f32).item<float>());
  return losses;
}

TEST_CASE("Models of several layers train with shares as with copies, bit for bit") {
  if (World().size() == 1 && on_emulated_cuda()) return;  // slow there; several ranks try it
  const Model& model = kModels[GENERATE(0u, 1u, 2u, 3u)];
  std::map<InMode::Kind, std::vector<float>> copies;
  for (const Sharding sharding :
       {Sharding::none, Sharding::optimizer_state, Sharding::gradients, Sharding::parameters}) {
    const World world({.ordered = true, .sharding = sharding});
    for (const InMode::Kind mode : kModes) {
      INFO(model.name << ", sharding " << static_cast<int>(sharding) << ", mode " << mode);
      const std::vector<float> losses = train(world, model, mode);
      if (sharding == Sharding::none) copies[mode] = losses;
      CHECK(losses == copies[mode]);
      CHECK(losses.back() < losses.front());
    }
  }
}

}  // namespace
}  // namespace ebb::tests
