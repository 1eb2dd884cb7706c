// Learns to write like a book with a decoder-only transformer, as a graph.
//
// Attention keeps one number per query, not one per pair, as the plan shows beforehand.
#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"
#include "ebb/examples/common/text.h"

using namespace ebb;

constexpr std::int64_t kBatch = 16, kLength = 64, kWidth = 64, kHeads = 4, kSteps = 1500;

// A block with the norm before each part, as in Radford et al., "Language models are unsupervised
// multitask learners".
struct Block {
  models::LayerNorm before_attention, before_mlp;
  models::MultiHeadAttention attention;
  models::Mlp mlp;
  explicit Block(const Parameters& p)
      : before_attention(p.scope("before_attention"), kWidth),
        before_mlp(p.scope("before_mlp"), kWidth),
        attention(p.scope("attention"), kWidth, {.heads = kHeads}),
        mlp(p.scope("mlp"), {kWidth, 4 * kWidth, kWidth}) {}
  Tensor operator()(Tensor x, const Tensor& bias, Phase phase) const {
    x += dropout(attention(before_attention(x), {.mask = bias, .causal = true}), 0.1, phase);
    return x + dropout(mlp(before_mlp(x)), 0.1, phase);
  }
};

// Attention bias that encodes position: scores fall linearly with distance, in each head at its own
// slope. Press, Smith and Lewis, "Train short, test long", ICLR 2022, with steeper slopes.
Tensor distances(Graph& graph) {
  const Tensor at = arange(graph, 0, kLength, {.dtype = DType::f32});
  const Tensor slopes = exp(-0.9 * arange(graph, 0, kHeads, {.dtype = DType::f32}));
  return -abs(unsqueeze(at, 0) - unsqueeze(at, 1)) * reshape(slopes, {kHeads, 1, 1});
}

struct Writer {
  const Tensor bias;
  models::Embedding embedding;
  Block first, second;
  models::LayerNorm norm;
  models::Dense out;
  Writer(const Parameters& p, Graph& graph, std::int64_t classes)
      : bias(distances(graph)),
        embedding(p.scope("embedding"), classes, kWidth),
        first(p.scope("first")),
        second(p.scope("second")),
        norm(p.scope("norm"), kWidth),
        out(p.scope("out"), kWidth, classes) {}
  // Codes [batch, kLength] to the scores of each next character, [batch, kLength, classes].
  Tensor operator()(const Tensor& codes, Phase phase) const {
    return out(norm(second(first(embedding(codes), bias, phase), bias, phase)));
  }
};

void run(const examples::Arguments& told) {
  const examples::Text text = examples::read_text(EBB_EXAMPLES_DATA "/alice.txt");
  Graph graph;
  const Tensor codes = graph.placeholder("codes", DType::i32, {-1, kLength});
  const Tensor next = graph.placeholder("next", DType::i32, {-1, kLength});
  const Parameters params(graph, Seed{7});
  const Writer writer(params, graph, text.classes());
  const optim::Adam adam({.learning_rate = optim::cosine(1e-2, {.warm_up = 100, .steps = kSteps}),
                          .clip = {.global_norm = 1}});
  const Tensor train =
      adam.minimize(softmax_cross_entropy(writer(codes, Phase::training), next), params);
  const Tensor scores = writer(codes, Phase::inference);
  const auto half = [](const Tensor& x) { return slice(x, kLength / 2, kEnd, {.axis = 1}); };
  const Tensor late = softmax_cross_entropy(half(scores), half(next));  // half a window is seen
  const Shape fed{kBatch, kLength};
  const memory::Plan plan = graph.plan({train}, {{codes, fed}, {next, fed}}, told.device);
  if (told.device.is_simulated()) return examples::print_peak(plan.peak_bytes);
  Session session(graph, {.device = told.device, .seed = Seed{3}});
  session.initialize(params);
  auto step = session.prepare(train, {codes, next});
  DataLoader batches(examples::windows(text.training, kLength, 1),
                     {.batch = kBatch, .shuffle = Seed{1}, .device = told.device});
  if (!told.resume.empty()) session.restore(told.resume, batches);
  const std::int64_t left = kSteps - batches.given();
  Progress progress(left, {.label = "training"});
  for (auto batch = batches.begin(); batches.given() < kSteps; ++batch) {  // less than a pass
    progress.step(step((*batch).input, (*batch).target).item<float>());
    if (!told.save.empty() && batches.given() % 100 == 0) session.save(told.save, batches);
  }
  progress.finish();
  if (left > 0) examples::print_peak(plan.peak_bytes, session.stats().allocated.peak);
  double sum = 0;
  DataLoader held_out(examples::windows(text.held_out, kLength, kLength / 2), {.batch = 1});
  for (const auto& [x, y] : held_out)
    sum += session.run(late, {{codes, x}, {next, y}}).item<float>();
  examples::print_bits(text, "transformer", sum / static_cast<double>(held_out.size()));
  examples::write(text, kLength, [&](std::span<const std::int32_t> written) {
    return session.run(scores, {{codes, Tensor::from(written.last(kLength), {1, kLength})}})[0][-1];
  });
}

int main(int argc, char** argv) {
  return examples::train_example(argc, argv, "Learns to write like a book, by a transformer.", run);
}
