// The programs' harness: arguments, exit codes, and the predicted and measured peak.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "ebb/core/device/device.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/memory/predict.h"
#include "ebb/core/tensor/tensor.h"

namespace examples {

// The arguments of a program that trains.
struct Arguments {
  ebb::Device device = ebb::Device::cpu();
  std::string save = {};    // "": nowhere
  std::string resume = {};  // "": from the start
};

// Gives the program an argument of its own, a number above 0.
void add_positive(const char* name, double& value, const char* help);

// The main of a small program: runs body(device) on the CPU, or on the device that an argument
// names. Returns the body's exit code. On an error prints one line on the standard error and
// returns 1 (failed, or its output could not be written) or 2 (bad arguments). On a simulated
// device the program ends successfully where it first reads a value.
int run_example(int argc, const char* const* argv, const char* purpose,
                const std::function<int(const ebb::Device&)>& body);
template <class Body>
requires std::is_void_v<std::invoke_result_t<Body, const ebb::Device&>>
int run_example(int argc, const char* const* argv, const char* purpose, const Body& body) {
  const auto returns_0 = [&](const ebb::Device& device) { return body(device), 0; };
  return run_example(argc, argv, purpose, std::function<int(const ebb::Device&)>(returns_0));
}

// The main of a program that trains: also takes --save and --resume, which need a device with
// values.
int train_example(int argc, const char* const* argv, const char* purpose,
                  const std::function<void(const Arguments&)>& body);

// Prints the peak of allocated bytes, as predicted and, where there was a run, as measured.
void print_peak(std::size_t predicted, std::optional<std::size_t> measured = {});

// Prints the largest difference of a result from PyTorch's. Returns whether it is at most 1e-5.
bool agrees(const char* what, const ebb::Tensor& result, const ebb::Tensor& torch);

// Returns train(arguments), and prints its peak above the bytes that the device held before. The
// prediction comes from another run, on the device's twin. A simulated device has one run, whose
// peak is the prediction.
template <class Train>
auto run_predicted(const Arguments& arguments, const Train& train) {
  const ebb::Device& device = arguments.device;
  std::optional<std::size_t> predicted;
  if (!device.is_simulated())
    predicted = ebb::memory::predict(device, [&](const ebb::Device& twin) {
                  train(Arguments{.device = twin, .resume = arguments.resume});  // saves nothing
                }).peak_bytes;
  const std::size_t held = ebb::memory::stats(device).allocated.current;
  const ebb::memory::PeakScope peak(device);
  auto result = train(arguments);
  const std::size_t reached = peak.bytes() - held;
  predicted ? print_peak(*predicted, reached) : print_peak(reached);
  return result;
}

enum class Mode { graph, eager, compiled };
inline constexpr std::array kModes = {Mode::graph, Mode::eager, Mode::compiled};

constexpr const char* name(Mode mode) noexcept {
  return mode == Mode::graph ? "graph" : mode == Mode::eager ? "eager" : "compiled";
}

// The arguments of train_lstm, train_mlp and compare_memory.
struct Options : Arguments {
  std::string model;  // "lstm" or "mlp"
  Mode mode = Mode::graph;
  std::int64_t epochs = 0;
  std::int64_t batch = 64;
  std::int64_t accumulate = 1;      // micro-batches that a batch is cut into
  bool accumulates_to_fit = false;  // as few micro-batches as the memory limit allows, instead
  std::optional<std::size_t> memory_limit = {};
  std::int64_t hidden = 0;
  std::int64_t layers = 1;
  std::int64_t length = 48;  // values of the series in each LSTM window
  std::uint64_t seed = 7;
  std::string data = {};
  std::string json = {};         // file for the figures; "": none
  std::string report = {};       // file for the page; "": none
  std::string tensorboard = {};  // folder for event files; "": none
  bool watches = false;          // serves the page meanwhile
  double learning_rate = 0;
  // Of the variants on the page: half of what a budget can save in graph mode; eager activations
  // computed again.
  bool has_budget = false, recomputes = false;

  std::int64_t micro_batch() const noexcept { return batch / accumulate; }
};

// The defaults of "lstm" or "mlp".
Options defaults(const std::string& model);

struct Program {
  std::string name;
  std::string purpose;
  std::string model;      // "": --model chooses
  bool compares = false;  // runs all modes, so that none is chosen
};

// Whether Ctrl-C was pressed in a run_program; pressed again it ends the process at once.
bool interrupted() noexcept;
// Thrown where a run ends because of it: exit code 130.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The main of a program with options, with the exit codes of run_example.
int run_program(int argc, const char* const* argv, const Program& program,
                const std::function<void(const Options&)>& body);

// The bodies of train_lstm and train_mlp, and of compare_memory (report.cpp). They print figures
// and write the file that --json names. Throw Error, after all output, where a training went past
// the capacity of its simulated device.
void train_and_report(const Options& options);
void compare_and_report(const Options& options);

}  // namespace examples
