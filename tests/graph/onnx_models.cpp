// Small models of the usual shapes as ONNX, for onnx_runtime.py.

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/graph/onnx_writer.h"

using namespace ebb;

namespace {

// Draws the parameters and writes the model with random inputs.
void write(const std::string& name, const Graph& graph, const Tensors& outputs,
           const Feeds& feeds) {
  Session session(graph, SessionOptions{.seed = Seed{3}});
  session.initialize();
  tests::write_onnx_case(name, session, outputs, feeds);
}

Tensor codes(std::int64_t batch, std::int64_t length) {
  return randint(0, 50, {batch, length}, {.dtype = DType::i64});
}

void write_mlp() {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 12});
  const models::Mlp mlp(Parameters(graph, Seed{1}), {12, 32, 16, 4},
                        {.activation = Activation::elu});
  write("mlp", graph, {softmax(mlp(x))}, {{x, normal({7, 12})}});
}

Tensor hidden_after(const models::Lstm& model, const Tensor& x, const models::LstmOutput& before,
                    const Tensor& lengths) {
  return model(x, {.initial = {before.hidden, before.cell}, .lengths = lengths}).hidden;
}
Tensor hidden_after(const models::Gru& model, const Tensor& x, const models::GruOutput& before,
                    const Tensor& lengths) {
  return model(x, {.hidden = before.hidden, .lengths = lengths}).hidden;
}

template <class Model>
void write_recurrent(const std::string& name, bool bidirectional) {
  Graph graph;
  const Parameters parameters(graph, Seed{1});
  const Tensor x = graph.placeholder("x", DType::f32, {-1, -1, 5}),
               lengths = graph.placeholder("lengths", DType::i64, {-1});
  const Model model(parameters, 5, {.hidden = 8, .layers = 2, .bidirectional = bidirectional});
  const auto whole = model(x), padded = model(x, {.lengths = lengths});
  write(name, graph,
        {whole.sequence, padded.sequence, padded.hidden, hidden_after(model, x, whole, {}),
         hidden_after(model, x, whole, lengths)},
        {{x, normal({3, 6, 5})}, {lengths, Tensor::from(std::vector<std::int64_t>{6, 0, 4})}});
}

struct ResidualBlock {
  models::Conv2d first, second, shortcut;
  models::BatchNorm first_norm, second_norm;
  ResidualBlock(const Parameters& p, std::int64_t in, std::int64_t out)
      : first(p.scope("first"), in, out, {.stride = 2, .padding = 1, .bias = false}),
        second(p.scope("second"), out, out, {.padding = 1, .bias = false}),
        shortcut(p.scope("shortcut"), in, out, {.kernel = 1, .stride = 2}),
        first_norm(p.scope("first_norm"), out),
        second_norm(p.scope("second_norm"), out) {}
  Tensor operator()(const Tensor& x) const {
    return relu(second_norm(second(relu(first_norm(first(x))))) + shortcut(x));
  }
};

void write_resnet() {
  Graph graph;
  const Parameters parameters(graph, Seed{1});
  const Tensor images = graph.placeholder("images", DType::f32, {-1, 3, -1, -1});
  const models::Conv2d stem(parameters.scope("stem"), 3, 8,
                            {.kernel = 7, .stride = 2, .padding = 3});
  const models::BatchNorm norm(parameters.scope("norm"), 8);
  const ResidualBlock a(parameters.scope("a"), 8, 16), b(parameters.scope("b"), 16, 24);
  const models::Dense head(parameters.scope("head"), 24, 10);
  const Tensor x = max_pool2d(relu(norm(stem(images))), {.kernel = 3, .stride = 2, .padding = 1});
  write("resnet", graph, {head(mean(b(a(x)), {.axes = {2, 3}}))},
        {{images, normal({2, 3, 40, 32})}});
}

// A block of a transformer, with the norms before its parts or behind them.
struct Block {
  models::MultiHeadAttention attention;
  models::LayerNorm first, second;
  models::Dense up, down;
  explicit Block(const Parameters& p)
      : attention(p.scope("attention"), 32, 4),
        first(p.scope("first"), 32),
        second(p.scope("second"), 32),
        up(p.scope("up"), 32, 64),
        down(p.scope("down"), 64, 32) {}
};

// The head has the table's weight.
void write_gpt2() {
  Graph graph;
  const Parameters parameters(graph, Seed{1});
  const Tensor at = graph.placeholder("codes", DType::i64, {-1, -1});
  const Tensor table = parameters.declare("wte", {50, 32}, initializers::normal(0, 0.1)),
               places = parameters.declare("wpe", {16, 32}, initializers::normal(0, 0.1));
  Tensor x =
      embedding(table, at) + embedding(places, cumsum(ones_like(at), 1, {.exclusive = true}));
  for (const char* name : {"h.0", "h.1"}) {
    const Block block(parameters.scope(name));
    x += block.attention(block.first(x), {.causal = true});
    x += block.down(gelu(block.up(block.second(x)), {.approximate = true}));
  }
  const models::LayerNorm last(parameters.scope("ln_f"), 32);
  write("gpt2", graph, {matmul(last(x), table, {.transpose_b = true})}, {{at, codes(2, 9)}});
}

// One row is padded, and one has no code at all.
void write_encoder() {
  Graph graph;
  const Parameters parameters(graph, Seed{1});
  const Tensor at = graph.placeholder("codes", DType::i64, {-1, 12}),
               counts = graph.placeholder("mask", DType::boolean, {-1, 12});
  const models::Embedding words(parameters.scope("words"), 50, 32);
  const Tensor places = parameters.declare("places", {16, 32}, initializers::normal(0, 0.1));
  const models::LayerNorm norm(parameters.scope("norm"), 32);
  const Tensor mask = unsqueeze(unsqueeze(counts, 1), 1);
  Tensor x = norm(words(at) + slice(places, 0, 12));
  for (const char* name : {"layer.0", "layer.1"}) {
    const Block block(parameters.scope(name));
    x = block.first(x + block.attention(x, {.mask = mask}));
    x = block.second(x + block.down(gelu(block.up(x))));
  }
  const models::Dense pooler(parameters.scope("pooler"), 32, 32, Activation::tanh);
  Tensor flags = arange(36, {.dtype = DType::f32});
  flags = reshape(less(flags, 20), {3, 12});
  const Tensor added = log(cast(unsqueeze(counts, 1), DType::f32));  // the same mask as scores
  write("encoder", graph,
        {x, pooler(select(x, 1, 0)), scaled_dot_product_attention(x, x, x, added),
         scaled_dot_product_attention(x, x, x, {.mask = added, .causal = true})},
        {{at, codes(3, 12)}, {counts, flags}});
}

// The place of an extreme among flags, which ONNX's operator does not take.
void write_places() {
  Graph graph;
  const Tensor at = graph.placeholder("at", DType::i64, {4});
  const Tensor flags = greater(at, 0);
  write("places", graph, {argmax(flags, 0), argmin(flags, 0)},
        {{at, Tensor::from(std::vector<std::int64_t>{-1, 0, 2, 3})}});
}

}  // namespace

TEST_CASE("models are written as ONNX", "[.onnx]") {
  set_seed(Seed{5});
  write_mlp();
  for (const bool both_ways : {false, true}) {
    const std::string name = both_ways ? " both ways" : "";
    write_recurrent<models::Lstm>("lstm" + name, both_ways);
    write_recurrent<models::Gru>("gru" + name, both_ways);
  }
  write_resnet();
  write_gpt2();
  write_encoder();
  write_places();
}
