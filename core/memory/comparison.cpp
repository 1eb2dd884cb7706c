#include "ebb/core/memory/comparison.h"

#include <chrono>
#include <cstdio>
#include <utility>

#include "ebb/core/device/runtime.h"
#include "ebb/core/device/simulation.h"
#include "ebb/core/random/random.h"

namespace ebb::memory {

Comparison::Comparison(const Device& device) : device_(device) {}

void Comparison::measure(std::string name, const Program& program, const PredictOptions& options) {
  Measurement result;
  result.name = std::move(name);
  if (!device_.is_simulated()) {
    const Device twin = device_.twin();
    const ebb::detail::GeneratorScope unchanged;  // what follows draws the same numbers
    const ebb::detail::SimulationScope simulation(twin, options.values);
    Marks marks(twin);
    program(twin, marks);
    result.predicted = marks.finish();
    result.fits = twin.runtime().fits();
    result.reads = simulation.reads();
  }
  const ebb::detail::SimulationScope simulation(device_, options.values);  // if it is a twin itself
  Marks marks(device_);
  const auto start = std::chrono::steady_clock::now();
  program(device_, marks);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  result.seconds = took.count();
  result.measured = marks.finish();
  result.losses = marks.losses();
  if (device_.is_simulated()) {
    result.predicted = result.measured;
    result.fits = device_.runtime().fits();
    result.reads = simulation.reads();
  }
  results_.push_back(std::move(result));
}

void Comparison::print() const {
  const std::string text = table();
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace ebb::memory
