// The memory and time of MLP, LSTM, GPT-2- and ResNet-shaped training steps: eager, eager with
// recompute() over equal segments of layers but the last, as a graph without a budget, at half and
// three quarters of the way to the least budget and at it, and compiled. Beside each budget, the
// best that segments do within it (checkpoint_sequential in PyTorch).
//
//   benchmark_budget [--model NAME...] [--layers N] [--device NAME] [--json FILE]
//   benchmark_budget --constants
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
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
using Make = Model (*)(const Parameters& params, int layers);

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Tensor value_of(const Spec& spec, const Device& device) {
  return spec.dtype == DType::f32 ? Tensor::full(spec.shape, 0.1, DType::f32, device)
                                  : Tensor::zeros(spec.shape, spec.dtype, device);
}

struct Measured {
  std::size_t predicted_peak_bytes = 0, peak_bytes = 0;
  double steps_per_second = 0;
};

// Predicts and runs a program that makes a step on the device and calls `run` with it.
Measured measure(
    const Device& device,
    const std::function<void(const Device& here,
                             const std::function<void(std::function<Tensor()>)>& run)>& program) {
  Measured measured;
  memory::Comparison comparison(device);
  comparison.measure("step", [&](const Device& here, memory::Marks& mark) {
    program(here, [&](const std::function<Tensor()>& step) {
      for (int i = 0; i < 3; ++i) mark.step(step());
      if (here.is_simulated()) return;
      int steps = 0;
      const double start = now();
      for (Tensor loss; now() - start < 0.5; loss.item<float>())  // which waits for the device
        for (int i = 0; i < 3; ++i, ++steps) loss = step();
      measured.steps_per_second = steps / (now() - start);
    });
  });
  measured.predicted_peak_bytes = comparison.results()[0].predicted.peak_bytes;
  measured.peak_bytes = comparison.results()[0].measured.peak_bytes;
  return measured;
}

Measured measure_eager(const Device& device, Make make, int layers, int segments,
                       bool is_compiled) {
  return measure(device, [&](const Device& here, const auto& run) {
    const Parameters params(here, Seed{1});
    const Model model = make(params, layers);
    const optim::Adam adam;
    const auto lines = [&](const Tensor& x, const Tensor& y) {
      return adam.minimize(model.loss(x, y, segments), params);
    };
    const auto compiled = compile(lines);
    const Tensor x = value_of(model.x, here), y = value_of(model.y, here);
    run([&] { return is_compiled ? compiled(x, y) : lines(x, y); });
  });
}

Measured measure_graph(const Device& device, const Step& step, std::optional<std::size_t> budget) {
  return measure(device, [&](const Device& here, const auto& run) {
    SessionOptions options{.device = here, .seed = Seed{1}};
    if (budget) options.budget = *budget;
    Session session(step.graph, options);
    session.initialize(step.params);
    auto prepared = session.prepare(step.train, {step.x, step.y});
    const Tensor x = value_of(step.model.x, here), y = value_of(step.model.y, here);
    run([&] { return prepared(x, y); });
  });
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

nlohmann::json run_model(const std::string& name, Make make, int layers, const Device& device) {
  const auto of_layers = [&](const Parameters& params) { return make(params, layers); };
  const Step step(of_layers);
  const memory::Plan plain = step.plan(device);
  const std::size_t least = step.graph.least_budget(
      {step.train}, {{step.x, step.model.x.shape}, {step.y, step.model.y.shape}}, device);
  std::vector<memory::Plan> segmented;
  for (int k = 1; k <= layers && layers <= kMostSegmented; ++k)
    segmented.push_back(Step(of_layers, k).plan(device));
  std::printf("%s, %d layers, %zu nodes, %.3g products\n%-15s %10s %10s %10s %8s %7s %6s %8s %s\n",
              name.c_str(), layers, plain.nodes, static_cast<double>(plain.work.products), "mode",
              "predicted", "measured", "bound", "products", "moved", "plan s", "steps/s",
              "segments");
  nlohmann::json rows;
  // `plan`: of the same work as a graph. The bound is the peak less what its placement loses.
  const auto add = [&](const std::string& mode, const Measured& measured, const memory::Plan& plan,
                       bool is_plan, nlohmann::json more) {
    const double products = ratio(plan.work.products, plain.work.products) - 1,
                 moved = ratio(plan.work.moved_bytes, plain.work.moved_bytes) - 1;
    const std::size_t bound =
        measured.predicted_peak_bytes - (plan.peak_bytes - plan.lower_bound_bytes);
    std::printf("%-15s %10s %10s %10s %8.4f %7.4f ", mode.c_str(),
                memory::figure(measured.predicted_peak_bytes).c_str(),
                memory::figure(measured.peak_bytes).c_str(),
                is_plan ? memory::figure(bound).c_str() : "-", products, moved);
    if (more.contains("plan_seconds"))
      std::printf("%6.2f", more["plan_seconds"].get<double>());
    else
      std::printf("%6s", "");
    std::printf(" %8.1f", measured.steps_per_second);
    if (more.contains("segments") && more["segments"] > 0)
      std::printf(" %d: %.4f", more["segments"].get<int>(),
                  more["segments_products"].get<double>());
    else if (more.contains("segments"))
      std::printf(" none keeps it");
    std::printf("\n");
    std::fflush(stdout);
    more.update({{"mode", mode},
                 {"predicted_peak_bytes", measured.predicted_peak_bytes},
                 {"measured_peak_bytes", measured.peak_bytes},
                 {"steps_per_second", measured.steps_per_second},
                 {"extra_products", products},
                 {"extra_moved", moved}});
    if (is_plan) more["lower_bound_bytes"] = bound;
    rows.push_back(std::move(more));
  };
  add("eager", measure_eager(device, make, layers, 0, false), plain, false, {});
  const int root = std::max(static_cast<int>(std::lround(std::sqrt(layers))), 1);
  // Eagerly, running statistics must not change in a part that is computed again.
  if (layers <= kMostSegmented && make != make_resnet)
    add("eager recompute", measure_eager(device, make, layers, root, false),
        segmented[static_cast<std::size_t>(root) - 1], false, {});
  add("graph", measure_graph(device, step, {}), plain, true, {});
  for (const double way : {0.5, 0.75, 1.0}) {
    const auto budget =
        plain.reserved_bytes -
        static_cast<std::size_t>(way * static_cast<double>(plain.reserved_bytes - least));
    const double start = now();
    const memory::Plan plan = step.plan(device, {.budget = budget});
    const double seconds = now() - start;
    const Segments segments = best_segments(segmented, plain, budget);
    add(way == 1     ? "  least"
        : way == 0.5 ? "  1/2 to least"
                     : "  3/4 to least",
        measure_graph(device, step, budget), plan, true,
        {{"way_to_least", way},
         {"budget_bytes", budget},
         {"repeated_nodes", plan.repeated_nodes},
         {"micro_batches", plan.micro_batches},
         {"moved_values", plan.moved_values},
         {"plan_seconds", seconds},
         {"segments", segments.count},
         {"segments_products", ratio(segments.products, plain.work.products)}});
  }
  add("compiled", measure_eager(device, make, layers, 0, true), plain, true, {});
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
  std::string file, on = "cpu";
  bool constants = false;
  app.add_option("--model", models, "mlp, lstm, gpt, resnet");
  app.add_option("--layers", layers);
  app.add_option("--device", on, "as in Device::parse");
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
  for (const std::string& model : models)
    all.push_back(run_model(model, makes.at(model), layers, Device::parse(on)));
  if (!file.empty()) std::ofstream(file) << all.dump(2) << "\n";
  return 0;
}
