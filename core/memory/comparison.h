#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ebb/core/memory/marks.h"

namespace ebb::memory {

// What Comparison::measure found out about a program.
struct Measurement {
  std::string name;
  Footprint predicted;         // on the device's twin
  Footprint measured;          // on the device; on a simulated one, the prediction
  bool fits = true;            // whether the twin's capacity sufficed
  std::vector<double> losses;  // of each step of the real run; none on a simulated device
  double seconds = 0;          // the real run took
};

// Lays the memory of programs side by side, predicted and measured.
//
//   memory::Comparison comparison(device);
//   comparison.measure("eager", [&](Device here, memory::Marks& mark) {
//     Parameters params(here, Seed{7});
//     Classifier model(params, 64, 10);
//     mark("built");
//     for (auto [x, y] : DataLoader(digits, {.batch = 128, .device = here}))
//       mark.step(adam.minimize(softmax_cross_entropy(model(x), y), params));
//     mark("trained");
//   });
//   comparison.print();
//
// Figures are the device's, whoever allocates on it meanwhile: load data before, and measure one
// program at a time.
class Comparison {
 public:
  using Program = std::function<void(Device, Marks&)>;

  explicit Comparison(const Device& device);

  // Runs the program on the device's twin, for the prediction, and then on the device. If that is
  // simulated itself, only there. The program gets the device it is to use, and leaves nothing
  // behind that it does not want counted: its end is the end of its scope. Throws what it throws;
  // then nothing has been added.
  void measure(std::string name, const Program& program);

  const Device& device() const noexcept { return device_; }
  const std::vector<Measurement>& results() const noexcept { return results_; }

  // The table, 80 columns wide, to the standard output.
  void print() const;
  std::string table() const;
  // {"device", "capacity_bytes", "simulated", "programs": [{"name", "seconds", "fits", "losses",
  // "predicted": {...}, "measured": {...}}]}; "measured" is null on a simulated device.
  std::string json() const;

 private:
  const Device device_;
  std::vector<Measurement> results_;
};

}  // namespace ebb::memory
