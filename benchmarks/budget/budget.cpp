// Plans that are made to fit: MLP, LSTM, GPT-2- and ResNet-shaped training steps, without a budget,
// at three quarters and half of the way to the least budget, and at the least. Beside each, the
// best that recompute() over equal segments of layers does within the same budget
// (checkpoint_sequential in PyTorch).
//
//   benchmark_budget [--model NAME...] [--layers N] [--json FILE]
//   benchmark_budget --constants
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ebb/ebb.h"

namespace {

using namespace ebb;
using Layers = std::vector<std::function<Tensor(Tensor)>>;

constexpr int kMostSegmented = 100;  // layers, above which no segments are compared

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

struct Measured {
  std::size_t peak_bytes = 0;
  double steps_per_second = 0;
};

// Runs steps for about half a second.
Measured measure(const Step& step, std::size_t budget) {
  Session session(step.graph, {.budget = budget, .seed = Seed{1}});
  session.initialize(step.params);
  const auto value = [](const Tensor& of, const Shape& shape) {
    return of.dtype() == DType::f32 ? Tensor::full(shape, 0.1) : Tensor::zeros(shape, of.dtype());
  };
  auto run = session.prepare(step.train, {step.x, step.y});
  const Tensor x = value(step.x, step.x_shape), y = value(step.y, step.y_shape);
  run(x, y);
  const std::size_t peak_bytes = session.stats().allocated.peak;
  int steps = 0;
  const double start = now();
  while (now() - start < 0.5 || steps < 3) {
    run(x, y);
    ++steps;
  }
  return {peak_bytes, steps / (now() - start)};
}

// The fewest products that recompute() over equal segments adds within a budget, and its segments.
struct Segments {
  std::size_t count = 0, products = 0;
};
Segments best_segments(const std::vector<memory::Plan>& plans, const memory::Plan& plain,
                       std::size_t budget) {
  Segments best;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const std::size_t products = plans[i].work.products - plain.work.products;
    if (plans[i].reserved_bytes <= budget && (best.count == 0 || products < best.products))
      best = {i + 1, products};
  }
  return best;
}

double ratio(std::size_t a, std::size_t b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

nlohmann::json run_model(const std::string& name, const Make& make, int layers) {
  Step step;
  make(step, layers, 0);
  const memory::Plan plain = step.plan();
  const std::size_t least = step.least();
  std::vector<memory::Plan> segmented;
  for (int k = 1; k <= layers && layers <= kMostSegmented; ++k) {
    Step other;
    make(other, layers, k);
    segmented.push_back(other.plan());
  }
  std::printf("%s, %d layers, %zu nodes, %.3g products\n%5s %10s %10s %10s %9s %7s %6s %8s %15s\n",
              name.c_str(), layers, plain.nodes, static_cast<double>(plain.work.products), "way",
              "predicted", "measured", "bound", "products", "moved", "plan s", "steps/s",
              "segments");
  nlohmann::json rows;
  for (const double way : {0.0, 0.5, 0.75, 1.0}) {
    const auto budget =
        plain.reserved_bytes -
        static_cast<std::size_t>(way * static_cast<double>(plain.reserved_bytes - least));
    const double start = now();
    const memory::Plan plan = step.plan(budget);
    const double seconds = now() - start;
    const Measured measured = measure(step, budget);
    const Segments segments = best_segments(segmented, plain, budget);
    rows.push_back({{"way_to_least", way},
                    {"budget_bytes", budget},
                    {"predicted_peak_bytes", plan.peak_bytes},
                    {"measured_peak_bytes", measured.peak_bytes},
                    {"lower_bound_bytes", plan.lower_bound_bytes},
                    {"extra_products", ratio(plan.extra_work.products, plain.work.products)},
                    {"extra_moved", ratio(plan.extra_work.moved_bytes, plain.work.moved_bytes)},
                    {"repeated_nodes", plan.repeated_nodes},
                    {"plan_seconds", seconds},
                    {"steps_per_second", measured.steps_per_second},
                    {"segments", segments.count},
                    {"segments_products", ratio(segments.products, plain.work.products)}});
    std::printf("%5.2f %10s %10s %10s %9.4f %7.4f %6.2f %8.1f", way,
                memory::figure(plan.peak_bytes).c_str(),
                memory::figure(measured.peak_bytes).c_str(),
                memory::figure(plan.lower_bound_bytes).c_str(),
                ratio(plan.extra_work.products, plain.work.products),
                ratio(plan.extra_work.moved_bytes, plain.work.moved_bytes), seconds,
                measured.steps_per_second);
    if (segments.count > 0)
      std::printf(" %6zu: %7.4f\n", segments.count, ratio(segments.products, plain.work.products));
    else
      std::printf("  none keeps it\n");
  }
  return {{"model", name}, {"layers", layers}, {"nodes", plain.nodes}, {"rows", rows}};
}

// Measures the constants of estimates in the CPU's profile: the fastest of several repetitions.
template <class Action>
double microseconds(const Action& action) {
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    const double start = now();
    action();
    best = std::min(best, 1e6 * (now() - start));
  }
  return best;
}

void measure_constants() {
  const NoGrad no_grad;
  constexpr std::int64_t kSide = 1024, kElements = std::int64_t{1} << 25;  // beyond any cache
  const Tensor a = Tensor::full({kSide, kSide}, 0.5), b = Tensor::full({kSide, kSide}, 0.25);
  const Tensor large = Tensor::full({kElements}, 0.5);
  const Tensor small = Tensor::full({4}, 0.5);
  const double product = microseconds([&] { matmul(a, b); });
  const double sum = microseconds([&] { add_assign(large, 1); });
  const double tiny = microseconds([&] {
    for (int i = 0; i < 1000; ++i) small + small;
  });
  std::printf("products_per_us %.0f, bytes_per_us %.0f, step_ns %.0f\n",
              static_cast<double>(kSide * kSide * kSide) / product,
              static_cast<double>(2 * sizeof(float) * kElements) / sum, tiny);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Plans that are made to fit a budget.");
  std::vector<std::string> models{"mlp", "lstm", "gpt", "resnet"};
  int layers = 12;
  std::string file;
  bool constants = false;
  app.add_option("--model", models, "mlp, lstm, gpt, resnet");
  app.add_option("--layers", layers);
  app.add_option("--json", file, "file for the figures");
  app.add_flag("--constants", constants, "measure the constants of memory::Profile instead");
  CLI11_PARSE(app, argc, argv);
  if (constants) {
    measure_constants();
    return 0;
  }
  const std::map<std::string, Make> makes{
      {"mlp", make_mlp}, {"lstm", make_lstm}, {"gpt", make_gpt}, {"resnet", make_resnet}};
  nlohmann::json all;
  for (const std::string& model : models) all.push_back(run_model(model, makes.at(model), layers));
  if (!file.empty()) std::ofstream(file) << all.dump(2) << "\n";
  return 0;
}
