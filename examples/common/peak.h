#pragma once
#include <cstdio>
#include <optional>

#include "ebb/core/memory/figures.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/memory/predict.h"
#include "ebb/examples/common/run_example.h"

namespace examples {

// The most bytes allocated at once: what was said before anything ran, and what it was.
inline void print_peak(std::size_t predicted, std::size_t measured) {
  std::printf("peak: %s predicted, %s measured\n", ebb::memory::exact_figure(predicted).c_str(),
              ebb::memory::exact_figure(measured).c_str());
}

// Where nothing can be measured.
inline void print_predicted(std::size_t predicted) {
  std::printf("peak: %s predicted\n", ebb::memory::exact_figure(predicted).c_str());
}

// What train(arguments) returns, which runs on the device's twin before; a simulated device is one
// itself. Prints both peaks, above what the device held.
template <class Train>
auto run_predicted(const Arguments& arguments, const Train& train) {
  const ebb::Device& device = arguments.device;
  std::optional<std::size_t> predicted;
  if (!device.is_simulated())
    predicted = ebb::memory::predict(device, [&](const ebb::Device& twin) {
                  train(Arguments{{.resume = arguments.resume}, twin});  // it reads no values
                }).peak_bytes;
  const std::size_t held = ebb::memory::stats(device).allocated.current;
  const ebb::memory::PeakScope peak(device);
  auto result = train(arguments);
  const std::size_t reached = peak.bytes() - held;
  predicted ? print_peak(*predicted, reached) : print_predicted(reached);
  return result;
}

}  // namespace examples
