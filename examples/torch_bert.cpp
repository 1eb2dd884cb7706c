// Runs an encoder with weights from PyTorch, as a graph.
//
// torch_models.py wrote the file: a small BERT with the names of Hugging Face's BertModel, and what
// it computes. The file has queries, keys and values apart; here they are one product.
#include <cstdio>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;

constexpr std::int64_t kFeatures = 16, kHeads = 2, kLayers = 2, kTokens = 40, kPositions = 24;
constexpr double kEpsilon = 1e-12;
constexpr const char* kFile = EBB_EXAMPLES_DATA "/torch_bert.safetensors";

const std::vector<TorchRule> kRules = {
    {"embeddings.*_embeddings", "embedding.*"},
    {"embeddings.LayerNorm", "norm"},
    {"encoder.layer.*.attention.self", "block.*.attention", TorchLayer::linear},
    {"encoder.layer.*.attention.output.dense", "block.*.attention.output", TorchLayer::linear},
    {"encoder.layer.*.attention.output.LayerNorm", "block.*.norm_1"},
    {"encoder.layer.*.intermediate.dense", "block.*.in"},
    {"encoder.layer.*.output.dense", "block.*.out"},
    {"encoder.layer.*.output.LayerNorm", "block.*.norm_2"},
    {"pooler.dense", "pooler", TorchLayer::linear}};

struct Block {
  models::MultiHeadAttention attention;
  models::LayerNorm norm_1, norm_2;
  models::Dense in, out;
  explicit Block(const Parameters& p)
      : attention(p.scope("attention"), kFeatures, {.heads = kHeads, .fused_qkv = true}),
        norm_1(p.scope("norm_1"), kFeatures, kEpsilon),
        norm_2(p.scope("norm_2"), kFeatures, kEpsilon),
        in(p.scope("in"), kFeatures, 4 * kFeatures, Activation::gelu),
        out(p.scope("out"), 4 * kFeatures, kFeatures) {}
  Tensor operator()(Tensor x, const Tensor& mask) const {
    x = norm_1(x + attention(x, {.mask = mask}));
    return norm_2(x + out(in(x)));
  }
};

struct Bert {
  models::Embedding words, positions, types;
  models::LayerNorm norm;
  std::vector<Block> blocks;
  models::Dense pooler;
  explicit Bert(const Parameters& p)
      : words(p.scope("embedding.word"), kTokens, kFeatures),
        positions(p.scope("embedding.position"), kPositions, kFeatures),
        types(p.scope("embedding.token_type"), 2, kFeatures),
        norm(p.scope("norm"), kFeatures, kEpsilon),
        pooler(p.scope("pooler"), kFeatures, kFeatures, Activation::tanh) {
    for (int i = 0; i < kLayers; ++i) blocks.emplace_back(p.scope("block." + std::to_string(i)));
  }
  // Tokens and types [batch, kPositions] to [batch, kPositions, kFeatures]. The mask is true for
  // tokens that count.
  Tensor operator()(const Tensor& tokens, const Tensor& token_types, const Tensor& mask) const {
    Tensor x = norm(words(tokens) + types(token_types) + positions.weight());
    for (const Block& block : blocks) x = block(x, mask);
    return x;
  }
};

int run(const Device& device) {
  const TensorsByName theirs = load_safetensors(kFile);
  Graph graph;
  const Tensor tokens = graph.placeholder("tokens", DType::i32, {-1, kPositions});
  const Tensor types = graph.placeholder("types", DType::i32, {-1, kPositions});
  const Tensor lengths = graph.placeholder("lengths", DType::i32, {-1});
  const Parameters params(graph);
  const Bert model(params);
  const Tensor counts = arange(graph, 0, kPositions, {.dtype = DType::i32}) < unsqueeze(lengths, 1);
  const Tensor sequence = model(tokens, types, reshape(counts, {-1, 1, 1, kPositions}));
  const Tensor pooled = model.pooler(select(sequence, 1, 0));
  std::printf("%s", torch_mapping(params, kFile, kRules).c_str());
  const Feeds feeds = {{tokens, theirs.at("expected.tokens")},
                       {types, theirs.at("expected.types")},
                       {lengths, theirs.at("expected.lengths")}};
  FedShapes shapes;
  for (const auto& [placeholder, value] : feeds) shapes.push_back({placeholder, value.shape()});
  const memory::Plan plan = graph.plan({sequence, pooled}, shapes, device);
  Session session(graph, device);
  session.load_torch(params, kFile, kRules);
  const auto [all, first] = session.run({sequence, pooled}, feeds);
  examples::print_peak(plan.peak_bytes, session.stats().allocated.peak);
  const bool equal = examples::agrees("sequence", all, theirs.at("expected.sequence"));
  return examples::agrees("pooled", first, theirs.at("expected.pooled")) && equal ? 0 : 1;
}

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "Runs a BERT with weights from PyTorch.", run);
}
