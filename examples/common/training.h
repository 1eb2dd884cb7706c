// The problems that the bundled models learn, and their training in each mode.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ebb/core/data/data_set.h"
#include "ebb/core/memory/comparison.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/examples/common/harness.h"

namespace examples {

// x to scores, on concrete and symbolic tensors alike.
using Model = std::function<ebb::Tensor(const ebb::Tensor& x, ebb::Phase phase)>;

// A forecast without a model, for comparison.
struct Baseline {
  std::string name;
  double metric = 0;
};

struct Problem {
  ebb::DataSet training, held_out;
  std::string description;  // one line
  std::string metric;       // its name
  std::function<Model(const ebb::Parameters& parameters)> build;
  // The mean over the rows, a scalar.
  std::function<ebb::Tensor(const ebb::Tensor& scores, const ebb::Tensor& target)> loss;
  // A figure of one batch: the metric is summarize(mean over all rows).
  std::function<double(const ebb::Tensor& scores, const ebb::Tensor& target)> score;
  std::function<double(double mean)> summarize;
  std::vector<Baseline> baselines = {};
};

// "mlp": the UCI 8x8 digits, or the file that --data names, by models::Classifier; a random fifth
// is held out. "lstm": the next monthly number of sunspots from the `length` before it, by
// models::Forecaster; the last fifth of the series is held out.
Problem make_problem(const Options& options);

struct Epoch {
  std::optional<double> loss;    // the mean over its samples; none on a simulated device
  std::optional<double> metric;  // on the part held out; likewise
  double seconds = 0;            // of training
};

// The figures of a session's pool.
struct SessionFigures {
  std::size_t planned_peak_bytes = 0;
  std::size_t peak_bytes = 0;
  std::size_t reserved_after_close_bytes = 0;
};

struct Training {
  std::int64_t parameters = 0;
  std::vector<Epoch> epochs;
  double steps_per_second = 0;
  std::optional<SessionFigures> session;  // in graph mode
};

// `options` with as few micro-batches as fit their memory limit (without one: what the device has
// left) where they ask for that, in each of `modes`. Found by predicting trainings. Throws Error if
// not even one sample at a time fits.
Options fitted(const Problem& problem, Options options, std::span<const Mode> modes);

// Name of the moment that all modes mark after the last epoch.
inline constexpr const char* kTrained = "after training";

// Trains in the mode of the options, for the comparison, whose name of it is the mode's and
// `variant`: first on the twin of its device, then on the device. Returns the training of the
// second run; on a simulated device there is only one. A memory limit of the options applies to the
// device from then on.
Training measure(ebb::memory::Comparison& comparison, const Problem& problem,
                 const Options& options, bool prints_epochs = false,
                 const std::string& variant = {});

}  // namespace examples
