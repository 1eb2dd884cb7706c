#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/figures.h"
#include "ebb/core/memory/serve.h"
#include "ebb/examples/common/training.h"

namespace examples {

using namespace ebb;

namespace {

using Json = nlohmann::ordered_json;

using Trainings = std::array<Training, kModes.size()>;

Json to_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

// One JSON object with the schema that all programs share.
Json to_json(const Options& options, const Training& training,
             const memory::Measurement& measurement) {
  Json epochs = Json::array(), by_category = Json::object();
  for (const Epoch& epoch : training.epochs)
    epochs.push_back({{"loss", to_json(epoch.loss)},
                      {"metric", to_json(epoch.metric)},
                      {"seconds", epoch.seconds}});
  const memory::Footprint& measured = measurement.measured;
  for (std::size_t i = 0; i < memory::kCategoryCount; ++i)
    by_category[memory::name(static_cast<memory::Category>(i))] = measured.by_category[i];
  Json memory = {{"predicted_peak_bytes", measurement.predicted.peak_bytes},
                 {"peak_bytes", measured.peak_bytes},
                 {"held_between_steps_bytes", measured.held_between_steps_bytes},
                 {"held_after_training_bytes", measured.at(kTrained)},
                 {"after_close_bytes", measured.end_bytes},
                 {"reserved_after_close_bytes", measured.reserved_end_bytes},
                 {"reserved_after_release_bytes", measured.reserved_released_bytes},
                 {"by_category", by_category}};
  if (training.session)
    memory["session"] = {
        {"planned_peak_bytes", training.session->planned_peak_bytes},
        {"peak_bytes", training.session->peak_bytes},
        {"reserved_after_close_bytes", training.session->reserved_after_close_bytes}};
  return {{"model", options.model},
          {"mode", measurement.name},
          {"device", options.device.name()},
          {"parameters", training.parameters},
          {"epochs", epochs},
          {"steps_per_second", training.steps_per_second},
          {"memory", memory}};
}

void write_json(const std::string& file, const Json& json) {
  if (file.empty()) return;
  std::ofstream out(file);
  out << json.dump(2) << "\n";
  out.close();
  if (!out) throw FileError(file + ": could not be written");
}

void require_fit(const memory::Comparison& comparison) {
  const Device& device = comparison.device();
  for (const memory::Measurement& result : comparison.results())
    if (device.is_simulated() && !result.fits)
      throw Error(result.name + " does not fit on " + device.name() + ", which has " +
                  memory::figure(device.runtime().capacity_bytes()));
}

void print_baselines(const Problem& problem) {
  for (const Baseline& baseline : problem.baselines)
    std::printf("  beside %s: %.4f\n", baseline.name.c_str(), baseline.metric);
}

Trainings measure_all(memory::Comparison& comparison, const Problem& problem, Options options,
                      const std::string& variant = {}) {
  Trainings trainings;
  for (std::size_t i = 0; i < kModes.size(); ++i) {
    options.mode = kModes[i];
    trainings[i] = measure(comparison, problem, options, false, variant);
  }
  return trainings;
}

// What the page has beside the modes: a budget, and recomputed activations.
void measure_variants(memory::Comparison& comparison, const Problem& problem, Options options) {
  options.epochs = 1;
  options.mode = Mode::graph;
  options.has_budget = true;
  measure(comparison, problem, options, false, ", budget");
  options.mode = Mode::eager;
  options.has_budget = false;
  options.recomputes = true;
  measure(comparison, problem, options, false, ", recompute");
}

void print_quality(const Problem& problem, const Trainings& trainings,
                   const memory::Comparison& comparison) {
  if (!trainings[0].epochs.back().metric) return;
  std::printf("Held-out %s: ", problem.metric.c_str());
  for (std::size_t i = 0; i < kModes.size(); ++i)
    std::printf("%s%s %.4f", i ? ", " : "", name(kModes[i]), *trainings[i].epochs.back().metric);
  std::printf(".\n");
  print_baselines(problem);

  double worst = 0;
  const std::vector<double>& first = comparison.results()[0].losses;
  for (const memory::Measurement& result : comparison.results())
    for (std::size_t i = 0; i < std::min(first.size(), result.losses.size()); ++i)
      worst = std::max(worst, std::abs(first[i] - result.losses[i]) / std::abs(first[i]));
  if (worst == 0)
    std::printf("The losses of all modes are equal, bit for bit, in all %zu steps.\n",
                first.size());
  else
    std::printf("The losses of the modes differ by at most %.1g of their value.\n", worst);
}

// Prints the peaks of a step without and with accumulation, and the change.
void print_accumulation(const Options& options, const memory::Comparison& without,
                        const memory::Comparison& with) {
  const bool simulated = without.device().is_simulated();
  std::printf("\nWhat accumulating over %lld micro-batches of %lld samples does to that peak\n\n",
              static_cast<long long>(options.accumulate),
              static_cast<long long>(options.micro_batch()));
  const int width = simulated ? 14 : 28;
  std::printf("%-10s%*s%*s%14s\n%-10s", "", width, "without", width, "with", "change", "");
  for (int i = 0; i < 2; ++i) std::printf("%14s%s", "predicted", simulated ? "" : "      measured");
  std::printf("\n");
  for (std::size_t i = 0; i < kModes.size(); ++i) {
    const memory::Measurement &a = without.results()[i], &b = with.results()[i];
    std::printf("%-10s", name(kModes[i]));
    for (const memory::Measurement* each : {&a, &b}) {
      std::printf("%14s", memory::figure(each->predicted.step_peak_bytes).c_str());
      if (!simulated) std::printf("%14s", memory::figure(each->measured.step_peak_bytes).c_str());
    }
    std::printf(
        "%14s\n",
        memory::change_figure(a.predicted.step_peak_bytes, b.predicted.step_peak_bytes).c_str());
  }
}

// Serves the page of the device if the options ask for it, until the result goes.
std::optional<memory::Server> watched(const Options& options) {
  if (!options.watches) return {};
  memory::Server server = memory::serve(0, options.device);
  std::printf("Watch at http://127.0.0.1:%d/\n", server.port());
  std::fflush(stdout);
  return server;
}

// Trains by the function. A run that was refused is on the page, too.
template <class Train>
auto reported(const Options& options, const memory::Comparison& comparison, const Train& train) {
  try {
    return train();
  } catch (const OutOfMemory&) {
    if (!options.report.empty()) comparison.write_html(options.report);
    throw;
  }
}

}  // namespace

void train_and_report(const Options& given) {
  const auto server = watched(given);
  const Problem problem = make_problem(given);
  std::printf("%s\n", problem.description.c_str());
  const Options options = fitted(problem, given, std::array{given.mode});
  memory::Comparison comparison(options.device);
  const Training training =
      reported(options, comparison, [&] { return measure(comparison, problem, options, true); });
  if (const auto metric = training.epochs.back().metric) {
    std::printf("\nheld-out %s %.4f, %lld parameters, %.0f steps/s\n", problem.metric.c_str(),
                *metric, static_cast<long long>(training.parameters), training.steps_per_second);
    print_baselines(problem);
  }
  std::printf("\n");
  comparison.print();
  write_json(options.json, to_json(options, training, comparison.results()[0]));
  if (!options.report.empty()) comparison.write_html(options.report);
  require_fit(comparison);
}

void compare_and_report(const Options& given) {
  const auto server = watched(given);
  const Problem problem = make_problem(given);
  std::printf("%s: %s\n\n", given.model.c_str(), problem.description.c_str());
  const Options options = fitted(problem, given, kModes);

  Options whole = options;
  if (!options.accumulates_to_fit) whole.accumulate = 1;
  memory::Comparison comparison(options.device);
  const Trainings trainings =
      reported(options, comparison, [&] { return measure_all(comparison, problem, whole); });
  comparison.print();
  print_quality(problem, trainings, comparison);

  memory::Comparison accumulated(options.device);
  if (options.accumulate > 1 && !options.accumulates_to_fit) {
    Options once = options;
    once.epochs = 1;  // its steps are all alike
    measure_all(accumulated, problem, once,
                ", " + std::to_string(options.accumulate) + " micro-batches");
    print_accumulation(options, comparison, accumulated);
  }

  Json json;
  for (std::size_t i = 0; i < kModes.size(); ++i)
    json[name(kModes[i])] = to_json(options, trainings[i], comparison.results()[i]);
  write_json(options.json, json);
  if (!options.report.empty()) {
    memory::Comparison variants(options.device);
    measure_variants(variants, problem, whole);
    comparison.write_html(options.report, {accumulated, variants});
  }
  require_fit(comparison);
  require_fit(accumulated);
}

}  // namespace examples
