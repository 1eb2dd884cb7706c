// Plans that are made to fit: MLP, LSTM, GPT-2- and ResNet-shaped training steps, without a budget,
// at three quarters and half of the way to the least budget, and at the least. Beside each, the
// best that recompute() over equal segments of layers does within the same budget
// (checkpoint_sequential in PyTorch).
//
//   benchmark_budget [--model NAME...] [--layers N] [--json FILE]
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ebb/ebb.h"

namespace {

using namespace ebb;
using Layers = std::vector<std::function<Tensor(Tensor)>>;

// A training step. With segments, the layers are cut into as many equal parts, each of which is
// computed again in the backward pass.
struct Step {
  Graph graph;
  Tensor x, y, train;
  Shape x_shape, y_shape;
  Parameters params{graph, Seed{1}};

  memory::Plan plan(std::optional<std::size_t> budget = {}) const {
    memory::PlanOptions options;
    if (budget) options.budget = *budget;
    return graph.plan({train}, {{x, x_shape}, {y, y_shape}}, Device::cpu(), options);
  }
  std::size_t least() const {
    return graph.least_budget({train}, {{x, x_shape}, {y, y_shape}}, Device::cpu());
  }
};

Tensor run_layers(const Layers& layers, Tensor x, int segments) {
  if (segments == 0) {
    for (const auto& layer : layers) x = layer(x);
    return x;
  }
  const std::size_t count = layers.size(), parts = static_cast<std::size_t>(segments);
  for (std::size_t s = 0; s < parts; ++s)
    x = recompute(
        [&, s](const Tensor& of) {
          Tensor value = of;
          for (std::size_t i = s * count / parts; i < (s + 1) * count / parts; ++i)
            value = layers[i](value);
          return value;
        },
        x);
  return x;
}

using Make = std::function<void(Step&, int layers, int segments)>;

void make_mlp(Step& step, int count, int segments) {
  constexpr std::int64_t kWidth = 256;
  step.x_shape = {512, kWidth};
  step.y_shape = {512};
  step.x = step.graph.placeholder("x", DType::f32, {-1, kWidth});
  step.y = step.graph.placeholder("y", DType::i32, {-1});
  Layers layers;
  for (int i = 0; i < count; ++i) {
    const models::Dense dense(step.params.scope("layer" + std::to_string(i)), kWidth, kWidth,
                              Activation::tanh);
    layers.push_back([dense](const Tensor& x) { return dense(x); });
  }
  const models::Dense out(step.params.scope("out"), kWidth, 10);
  const Tensor loss = softmax_cross_entropy(out(run_layers(layers, step.x, segments)), step.y);
  step.train = optim::Adam().minimize(loss, step.params);
}

// One layer over segments of time; the layers are the segments.
void make_lstm(Step& step, int count, int segments) {
  constexpr std::int64_t kIn = 32, kHidden = 128, kTime = 16, kBatch = 32;
  step.x_shape = {kBatch, kTime * count, kIn};
  step.y_shape = {kBatch, kHidden};
  step.x = step.graph.placeholder("x", DType::f32, step.x_shape);
  step.y = step.graph.placeholder("y", DType::f32, step.y_shape);
  const LstmWeights weights{
      step.params.declare("w", {kIn, 4 * kHidden}, initializers::uniform(-0.1, 0.1)),
      step.params.declare("r", {kHidden, 4 * kHidden}, initializers::uniform(-0.1, 0.1)),
      step.params.declare("b", {4 * kHidden}, initializers::zeros())};
  Layers layers;  // of hidden and cell state, stacked
  for (int i = 0; i < count; ++i)
    layers.push_back([&step, weights, i](const Tensor& states) {
      const Tensor part = slice(step.x, i * kTime, (i + 1) * kTime, {.axis = 1});
      const LstmResult result = lstm(part, {weights}, {.hidden = states[0], .cell = states[1]});
      return stack({result.hidden, result.cell});
    });
  const Tensor states = run_layers(layers, zeros(step.graph, {2, 1, kBatch, kHidden}), segments);
  step.train = optim::Adam().minimize(mean(square(reshape(states[0], {kBatch, kHidden}) - step.y)),
                                      step.params);
}

void make_gpt(Step& step, int count, int segments) {
  constexpr std::int64_t kWidth = 128, kLength = 64, kBatch = 8, kClasses = 512;
  struct Block {
    models::LayerNorm before_attention, before_mlp;
    models::MultiHeadAttention attention;
    models::Dense up, down;
    explicit Block(const Parameters& p)
        : before_attention(p.scope("before_attention"), kWidth),
          before_mlp(p.scope("before_mlp"), kWidth),
          attention(p.scope("attention"), kWidth, {.heads = 4}),
          up(p.scope("up"), kWidth, 4 * kWidth),
          down(p.scope("down"), 4 * kWidth, kWidth) {}
    Tensor operator()(Tensor x) const {
      x = x + attention(before_attention(x), {.causal = true});
      return x + down(gelu(up(before_mlp(x))));
    }
  };
  step.x_shape = step.y_shape = {kBatch, kLength};
  step.x = step.graph.placeholder("codes", DType::i32, {-1, kLength});
  step.y = step.graph.placeholder("next", DType::i32, {-1, kLength});
  const models::Embedding embedding(step.params.scope("embedding"), kClasses, kWidth);
  Layers layers;
  for (int i = 0; i < count; ++i) {
    const Block block(step.params.scope("block" + std::to_string(i)));
    layers.push_back([block](const Tensor& x) { return block(x); });
  }
  const models::LayerNorm norm(step.params.scope("norm"), kWidth);
  const models::Dense out(step.params.scope("out"), kWidth, kClasses);
  const Tensor scores = out(norm(run_layers(layers, embedding(step.x), segments)));
  step.train = optim::Adam().minimize(softmax_cross_entropy(scores, step.y), step.params);
}

void make_resnet(Step& step, int count, int segments) {
  constexpr std::int64_t kBatch = 8, kSide = 32;
  struct Block {
    models::Conv2d near, far;
    models::BatchNorm near_norm, far_norm;
    Block(const Parameters& p, std::int64_t channels)
        : near(p.scope("near"), channels, channels, {.kernel = 3, .padding = 1}),
          far(p.scope("far"), channels, channels, {.kernel = 3, .padding = 1}),
          near_norm(p.scope("near_norm"), channels),
          far_norm(p.scope("far_norm"), channels) {}
    Tensor operator()(const Tensor& x) const {
      const Tensor y = relu(near_norm(near(x), Phase::training));
      return relu(x + far_norm(far(y), Phase::training));
    }
  };
  step.x_shape = {kBatch, 3, kSide, kSide};
  step.y_shape = {kBatch};
  step.x = step.graph.placeholder("x", DType::f32, step.x_shape);
  step.y = step.graph.placeholder("y", DType::i32, step.y_shape);
  const models::Conv2d stem(step.params.scope("stem"), 3, 16, {.kernel = 3, .padding = 1});
  Layers layers;
  std::int64_t channels = 16;
  for (int i = 0; i < count; ++i) {
    const std::string name = "block" + std::to_string(i);
    if (i > 0 && i % std::max(count / 3, 1) == 0 && channels < 64) {
      const models::Conv2d down(step.params.scope(name + "down"), channels, 2 * channels,
                                {.kernel = 3, .stride = 2, .padding = 1});
      channels *= 2;
      layers.push_back([down](const Tensor& x) { return relu(down(x)); });
    }
    const Block block(step.params.scope(name), channels);
    layers.push_back([block](const Tensor& x) { return block(x); });
  }
  const Tensor features = mean(run_layers(layers, stem(step.x), segments), {.axes = {2, 3}});
  const models::Dense out(step.params.scope("out"), channels, 10);
  step.train = optim::Adam().minimize(softmax_cross_entropy(out(features), step.y), step.params);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void run_model(const std::string& name, const Make& make, int layers) {
  Step step;
  make(step, layers, 0);
  const memory::Plan plain = step.plan();
  double start = now();
  const std::size_t least = step.least();
  std::printf("%s, %d layers, %zu nodes; least in %.2f s; products %.3g\n", name.c_str(), layers,
              plain.nodes, now() - start, static_cast<double>(plain.work.products));
  std::vector<memory::Plan> segmented;
  for (int k = 1; k <= layers && k <= 200; ++k) {
    if (layers > 100) break;
    Step other;
    make(other, layers, k);
    segmented.push_back(other.plan());
  }
  std::printf("  %-8s %10s %10s %9s %9s %9s %7s | %9s %10s\n", "budget", "reserved", "bound",
              "products", "moved", "repeated", "plan s", "segments", "products");
  for (const double way : {0.0, 0.25, 0.5, 0.75, 0.9, 1.0}) {
    const auto budget =
        plain.reserved_bytes -
        static_cast<std::size_t>(way * static_cast<double>(plain.reserved_bytes - least));
    start = now();
    const memory::Plan plan = step.plan(budget);
    const double seconds = now() - start;
    std::size_t best = ~std::size_t{0}, k = 0;
    for (std::size_t i = 0; i < segmented.size(); ++i)
      if (segmented[i].reserved_bytes <= budget &&
          segmented[i].work.products - plain.work.products < best) {
        best = segmented[i].work.products - plain.work.products;
        k = i + 1;
      }
    std::printf(
        "  %-8.2f %10zu %10zu %9.4f %9.4f %9zu %7.2f | %9zu %10.4f\n", way, plan.reserved_bytes,
        plan.lower_bound_bytes,
        static_cast<double>(plan.extra_work.products) / static_cast<double>(plain.work.products),
        static_cast<double>(plan.extra_work.moved_bytes) /
            static_cast<double>(plain.work.moved_bytes),
        plan.repeated_nodes, seconds, k,
        k ? static_cast<double>(best) / static_cast<double>(plain.work.products) : -1.0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Plans that are made to fit a budget.");
  std::vector<std::string> models{"mlp", "lstm", "gpt", "resnet"};
  int layers = 12;
  app.add_option("--model", models);
  app.add_option("--layers", layers);
  CLI11_PARSE(app, argc, argv);
  const std::map<std::string, Make> makes{
      {"mlp", make_mlp}, {"lstm", make_lstm}, {"gpt", make_gpt}, {"resnet", make_resnet}};
  for (const std::string& model : models) run_model(model, makes.at(model), layers);
  return 0;
}
