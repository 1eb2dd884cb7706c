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

#include "ebb/benchmarks/budget/models.h"
#include "ebb/ebb.h"

namespace {

using namespace ebb;

constexpr int kMostSegmented = 100;  // layers, above which no segments are compared
using Make = std::function<void(Step&, int layers, int segments)>;

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
    const memory::Plan plan = step.plan({.budget = budget});
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
