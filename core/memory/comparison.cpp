#include "ebb/core/memory/comparison.h"

#include <chrono>
#include <cstdio>
#include <utility>

#include "ebb/core/device/runtime.h"
#include "ebb/core/random/random.h"

namespace ebb::memory {

namespace {
struct Run {
  Footprint footprint;
  std::vector<double> losses;
  double seconds = 0;
};

Run run(const Device& device, const Comparison::Program& program) {
  Marks marks(device);
  const auto start = std::chrono::steady_clock::now();
  program(device, marks);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return {marks.finish(), marks.losses(), took.count()};
}

Footprint predict(const Device& twin, const Comparison::Program& program) {
  const ebb::detail::GeneratorScope unchanged;  // what follows draws the same numbers
  return run(twin, program).footprint;
}
}  // namespace

Comparison::Comparison(const Device& device) : device_(device) {}

void Comparison::measure(std::string name, const Program& program) {
  Measurement result;
  result.name = std::move(name);
  if (!device_.is_simulated()) {
    const Device twin = device_.twin();
    result.predicted = predict(twin, program);
    result.fits = twin.runtime().fits();
  }
  Run real = run(device_, program);
  result.measured = std::move(real.footprint);
  result.losses = std::move(real.losses);
  result.seconds = real.seconds;
  if (device_.is_simulated()) {
    result.predicted = result.measured;
    result.fits = device_.runtime().fits();
  }
  results_.push_back(std::move(result));
}

void Comparison::print() const {
  const std::string text = table();
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace ebb::memory
