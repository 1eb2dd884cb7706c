#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "ebb/allocator/event_log.h"
#include "ebb/core/memory/marks.h"
#include "ebb/core/memory/predict.h"

namespace ebb::memory {

namespace detail {
struct Run;
}

// Result of Comparison::measure for one program.
struct Measurement {
  std::string name;
  Footprint predicted;          // on the device's twin
  Footprint measured;           // on the device; equal to the prediction on a simulated one
  bool fits = true;             // whether the twin's capacity was enough
  std::vector<ReadLine> reads;  // values that the prediction gave, as in Prediction::reads
  std::vector<double> losses;   // of each step of the real run; empty on a simulated device
  double seconds = 0;           // duration of the real run
  std::vector<Plan> plans;      // as marked, of the run on the device
  std::shared_ptr<const EventLog> log = {};  // of the run on the device; may be null
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
// Figures include everything allocated on the device meanwhile, so load data first and measure one
// program at a time.
class Comparison {
 public:
  using Program = std::function<void(Device, Marks&)>;

  explicit Comparison(const Device& device);

  // Runs the program on the device's twin for the prediction, then on the device; a simulated
  // device gets only the second run. Options are those of predict(). The program uses the device it
  // is given. Anything it leaves allocated counts as held at its end. Throws the program's
  // exceptions; the page and the traces then have the run up to there, and the results do not. If
  // the device is being recorded, that recording gets the events and the marks, and the page and
  // the traces of the comparison lack this run's.
  void measure(std::string name, const Program& program, const PredictOptions& options = {});

  const Device& device() const noexcept { return device_; }
  const std::vector<Measurement>& results() const noexcept { return results_; }

  // Prints the table, 80 columns wide, to the standard output.
  void print() const;
  std::string table() const;
  // {"device", "capacity_bytes", "simulated", "programs": [{"name", "seconds", "fits", "losses",
  // "predicted": {...}, "measured": {...}}]}; "measured" is null on a simulated device.
  std::string json() const;
  // Writes the page described at Recording::write_html(): all programs on one axis of steps, with
  // predictions and plans, and those of other comparisons after them. Throws FileError.
  void write_html(
      const std::string& path,
      std::initializer_list<std::reference_wrapper<const Comparison>> beside = {}) const;
  // Writes a page of the ranks of a world, whose comparisons all call this: the runs of each, named
  // "rank 1: eager", on rank 0's disk. Throws Error where a rank has failed, FileError on rank 0.
  void write_html(const std::string& path, const distributed::World& ranks) const;

  // Write the recordings of all runs into one file, like the functions of Recording. For Perfetto a
  // run is a process, for PyTorch a device. Throw FileError.
  void write_perfetto(const std::string& path) const;
  void write_pytorch_snapshot(const std::string& path) const;
  // Writes a folder for each run, with "memory/predicted_peak" besides. Throws FileError.
  void write_tensorboard(const std::string& folder) const;

 private:
  std::vector<detail::Run> recorded_runs() const;
  template <class Function>
  void for_each_run(const Function& function) const {
    for (const auto* runs : {&results_, &failed_})
      for (const Measurement& run : *runs) function(run);
  }

  const Device device_;
  std::vector<Measurement> results_;
  std::vector<Measurement> failed_;  // what is known of those that threw
};

}  // namespace ebb::memory
