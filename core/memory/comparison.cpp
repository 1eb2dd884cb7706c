#include "ebb/core/memory/comparison.h"

#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include "ebb/core/device/runtime.h"
#include "ebb/core/device/simulation.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/memory/recording.h"
#include "ebb/core/memory/writers.h"
#include "ebb/core/random/random.h"

namespace ebb::memory {

// Kept of each run, in 8 MB; older ones are condensed.
static constexpr std::size_t kMostEvents = 250'000;

Comparison::Comparison(const Device& device) : device_(device) {}

void Comparison::measure(std::string name, const Program& program, const PredictOptions& options) {
  Measurement result;
  result.name = std::move(name);
  const auto run = [&](const Device& device) {
    const ebb::detail::SimulationScope simulation(device, options.values);
    std::optional<Recording> recording;
    if (!device.runtime().allocator().recorder()) {  // of the twin too, which may refuse
      release_cached(device);
      recording.emplace(device, RecordingOptions{.max_events = kMostEvents});
    }
    Marks marks(device);
    const auto start = std::chrono::steady_clock::now();
    result.log = recording ? recording->log() : nullptr;
    try {
      program(device, marks);
    } catch (...) {
      result.name += ", failed";
      result.plans = marks.plans();
      if (recording) failed_.push_back(std::move(result));
      throw;
    }
    if (recording) recording->mark("scope end");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    result.seconds = took.count();
    result.losses = marks.losses();
    result.plans = marks.plans();
    if (device.is_simulated()) {
      result.fits = device.runtime().fits();
      result.reads = simulation.reads();
    }
    return marks.finish();
  };
  if (!device_.is_simulated()) {
    const ebb::detail::GeneratorScope unchanged;  // what follows draws the same numbers
    result.predicted = run(device_.twin());
  }
  result.measured = run(device_);
  if (device_.is_simulated()) result.predicted = result.measured;
  results_.push_back(std::move(result));
}

void Comparison::print() const {
  const std::string text = table();
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::vector<detail::Run> Comparison::recorded_runs() const {
  std::vector<detail::Run> runs;
  for_each_run([&](const Measurement& run) {
    if (run.log)
      runs.push_back({run.name + " on " + device_.name(), run.log,
                      device_.runtime().allocator().limit_bytes(), run.predicted.peak_bytes});
  });
  return runs;
}

void Comparison::write_perfetto(const std::string& path) const {
  detail::write_perfetto(path, recorded_runs());
}

void Comparison::write_pytorch_snapshot(const std::string& path) const {
  detail::write_pytorch_snapshot(path, recorded_runs());
}

void Comparison::write_tensorboard(const std::string& folder) const {
  detail::write_tensorboard(folder, recorded_runs());
}

}  // namespace ebb::memory
