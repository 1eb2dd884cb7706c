#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "ebb/core/memory/figures.h"
#include "ebb/examples/common/measure.h"
#include "ebb/examples/common/run_program.h"

namespace examples {

using namespace ebb;

namespace {

constexpr std::array kModes = {Mode::graph, Mode::eager};
using Trainings = std::array<Training, kModes.size()>;

Trainings measure_both(memory::Comparison& comparison, const Problem& problem, Options options) {
  Trainings trainings;
  for (std::size_t i = 0; i < kModes.size(); ++i) {
    options.mode = kModes[i];
    trainings[i] = measure(comparison, name(kModes[i]), problem, options, false);
  }
  return trainings;
}

void print_quality(const Problem& problem, const Trainings& trainings,
                   const memory::Comparison& comparison) {
  if (!trainings[0].epochs.back().metric) return;
  std::printf("Held-out %s: ", problem.metric().c_str());
  for (std::size_t i = 0; i < kModes.size(); ++i)
    std::printf("%s%s %.4f", i ? ", " : "", name(kModes[i]), *trainings[i].epochs.back().metric);
  std::printf(".\n");
  for (const Baseline& baseline : problem.baselines())
    std::printf("  beside %s: %.4f\n", baseline.name.c_str(), baseline.metric);

  double worst = 0;
  const std::vector<double>&a = comparison.results()[0].losses, &b = comparison.results()[1].losses;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = std::max(worst, std::abs(a[i] - b[i]) / std::abs(a[i]));
  if (worst == 0)
    std::printf("The losses of both modes are equal, bit for bit, in all %zu steps.\n", a.size());
  else
    std::printf("The losses of both modes differ by at most %.1g of their value.\n", worst);
}

// The peaks of a step without and with accumulation, and what has changed.
void print_accumulation(const Options& options, const memory::Comparison& without,
                        const memory::Comparison& with) {
  const bool simulated = without.device().is_simulated();
  const auto row = [&](const char* label, const auto& cell) {
    std::printf("%-24s", label);
    for (std::size_t i = 0; i < kModes.size(); ++i) {
      const memory::Measurement &a = without.results()[i], &b = with.results()[i];
      std::printf("%14s", cell(a.predicted.step_peak_bytes, b.predicted.step_peak_bytes).c_str());
      if (!simulated)
        std::printf("%14s", cell(a.measured.step_peak_bytes, b.measured.step_peak_bytes).c_str());
    }
    std::printf("\n");
  };
  const int width = simulated ? 14 : 28;
  std::printf("\nWhat accumulating over %lld micro-batches of %lld samples does to that peak\n\n",
              static_cast<long long>(options.accumulate),
              static_cast<long long>(options.micro_batch()));
  std::printf("%-24s%*s%*s\n%-24s", "", width, "graph", width, "eager", "");
  for (std::size_t i = 0; i < kModes.size(); ++i)
    std::printf("%14s%s", "predicted", simulated ? "" : "      measured");
  std::printf("\n");
  row("peak in a step, without", [](std::size_t a, std::size_t) { return memory::figure(a); });
  row("peak in a step, with", [](std::size_t, std::size_t b) { return memory::figure(b); });
  row("change", [](std::size_t a, std::size_t b) { return memory::change_figure(a, b); });
}

}  // namespace

void compare_and_report(const Options& options) {
  const auto problem = make_problem(options);
  std::printf("%s: %s\n\n", options.model.c_str(), problem->describe().c_str());

  Options whole = options;
  whole.accumulate = 1;
  memory::Comparison comparison(options.device);
  const Trainings trainings = measure_both(comparison, *problem, whole);
  comparison.print();
  print_quality(*problem, trainings, comparison);

  memory::Comparison accumulated(options.device);
  if (options.accumulate > 1) {
    Options once = options;
    once.epochs = 1;  // its steps are all alike
    measure_both(accumulated, *problem, once);
    print_accumulation(options, comparison, accumulated);
  }

  if (!options.json.empty()) {
    nlohmann::ordered_json json;
    for (std::size_t i = 0; i < kModes.size(); ++i) {
      whole.mode = kModes[i];
      json[name(kModes[i])] = to_json(whole, trainings[i], comparison.results()[i]);
    }
    write_json(options.json, json);
  }
  require_fit(comparison);
  require_fit(accumulated);
}

}  // namespace examples
