// Runs a GPT-2 with weights from PyTorch, eagerly, and writes with it token by token.
//
// torch_models.py wrote the file: a small GPT-2 with the names of Hugging Face's GPT2LMHeadModel,
// and what it computes.
#include <cstdio>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;

constexpr std::int64_t kFeatures = 16, kHeads = 2, kLayers = 2, kTokens = 40, kPositions = 24;
constexpr const char* kFile = EBB_EXAMPLES_DATA "/torch_gpt2.safetensors";

const std::vector<TorchRule> kRules = {
    {"transformer.wte", "token"},
    {"lm_head", "token"},  // tied, and left out of the file
    {"transformer.wpe", "position"},
    {"transformer.h.*.ln_*", "block.*.norm_*"},
    {"transformer.h.*.attn.c_attn", "block.*.attention.qkv"},
    {"transformer.h.*.attn.c_proj", "block.*.attention.output", TorchLayer::unchanged},  // square
    {"transformer.h.*.mlp.c_*", "block.*.mlp.*"},
    {"transformer.ln_f", "norm"}};

struct Block {
  models::LayerNorm norm_1, norm_2;
  models::MultiHeadAttention attention;
  models::Dense fc, proj;
  explicit Block(const Parameters& p)
      : norm_1(p.scope("norm_1"), kFeatures),
        norm_2(p.scope("norm_2"), kFeatures),
        attention(p.scope("attention"), kFeatures, {.heads = kHeads, .fused_qkv = true}),
        fc(p.scope("mlp.fc"), kFeatures, 4 * kFeatures, Activation::gelu_tanh),
        proj(p.scope("mlp.proj"), 4 * kFeatures, kFeatures) {}
  Tensor operator()(Tensor x, models::AttentionCache& cache, const Tensor& position) const {
    auto [output, now] = attention(norm_1(x), std::move(cache), position);
    cache = std::move(now);
    x += output;
    return x + proj(fc(norm_2(x)));
  }
};

struct Gpt2 {
  models::Embedding token, position;
  std::vector<Block> blocks;
  models::LayerNorm norm;
  explicit Gpt2(const Parameters& p)
      : token(p.scope("token"), kTokens, kFeatures),
        position(p.scope("position"), kPositions, kFeatures),
        norm(p.scope("norm"), kFeatures) {
    for (int i = 0; i < kLayers; ++i) blocks.emplace_back(p.scope("block." + std::to_string(i)));
  }
  // Scores [batch, steps, kTokens] of the token after each of `tokens` [batch, steps]. The first of
  // them stands at `begin`; the caches have those before, and are empty for a new sequence.
  Tensor operator()(const Tensor& tokens, std::vector<models::AttentionCache>& caches,
                    std::int64_t begin) const {
    const Device device = tokens.device();
    const Shape cache{tokens.shape()[0], kHeads, kPositions, kFeatures / kHeads};
    while (caches.size() < blocks.size())
      caches.push_back(
          {Tensor::zeros(cache, DType::f32, device), Tensor::zeros(cache, DType::f32, device)});
    Tensor x = token(tokens) + slice(position.weight(), begin, begin + tokens.shape()[1]);
    for (std::size_t i = 0; i < blocks.size(); ++i)
      x = blocks[i](x, caches[i], Tensor::from(begin).to(device));
    return matmul(norm(x), token.weight(), {.transpose_b = true});
  }
};

int run(const Device& device) {
  const TensorsByName theirs = load_safetensors(kFile);
  const Parameters shapes(device.twin());
  const Gpt2 shaped(shapes);
  std::printf("%s", torch_mapping(shapes, kFile, kRules).c_str());
  const auto compute = [&](const examples::Arguments& told) {
    const NoGrad no_grad;
    const Parameters params(told.device);
    const Gpt2 model(params);
    load_torch(params, kFile, kRules);
    const TensorsByName given = load_safetensors(kFile, told.device);
    std::vector<models::AttentionCache> whole, caches;
    const Tensor scores = model(given.at("expected.tokens"), whole, 0);
    Tensor next = slice(given.at("expected.written"), 0, 4, {.axis = 1});
    Tensor written = next;
    for (std::int64_t begin = 0; written.shape()[1] < kPositions; begin = written.shape()[1] - 1) {
      next = argmax(slice(model(next, caches, begin), -1, kEnd, {.axis = 1}), -1);
      written = concat({written, cast(next, DType::i32)}, 1);
    }
    return std::pair{scores, written};
  };
  const auto [scores, written] = examples::run_predicted({.device = device}, compute);
  const bool equal = examples::agrees("scores", scores, theirs.at("expected.scores"));
  return examples::agrees("tokens written", written, theirs.at("expected.written")) && equal ? 0
                                                                                             : 1;
}

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "Runs a GPT-2 with weights from PyTorch.", run);
}
