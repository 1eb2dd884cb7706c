#pragma once
#include <cstdio>

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

// What train(arguments) returns, which runs on the device's twin before. Prints both peaks, above
// what the device held.
template <class Train>
auto run_predicted(const Arguments& arguments, const Train& train) {
  const ebb::Device& device = arguments.device;
  const std::size_t predicted =
      ebb::memory::predict(device, [&](const ebb::Device& twin) {
        train(Arguments{{.resume = arguments.resume}, twin});  // of what is saved it has no values
      }).peak_bytes;
  const std::size_t held = ebb::memory::stats(device).allocated.current;
  const ebb::memory::PeakScope peak(device);
  auto result = train(arguments);
  print_peak(predicted, peak.bytes() - held);
  return result;
}

}  // namespace examples
