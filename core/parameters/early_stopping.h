#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ebb/core/device/host_bytes.h"
#include "ebb/core/parameters/parameters.h"

namespace ebb {

struct EarlyStoppingOptions {
  std::int64_t patience = 10;     // stop after this many updates in a row without a better metric
  double least_change = 0;        // an improvement must be larger than this
  bool higher_is_better = false;  // true for an accuracy, false for a loss
};

// Ends a training once its metric on held-out data stops improving, and keeps the best weights.
//
//   EarlyStopping stopping({.patience = 5});
//   for (int epoch = 0; epoch < 100; ++epoch) {
//     train_an_epoch();
//     if (stopping.update(validation_loss(), params).stop) break;
//   }
//   stopping.restore(params);
//
// A graph's values belong to its session, which keeps them in a file: if (stopping.update(loss))
// session.save(file); and at the end session.restore(file).
class EarlyStopping {
 public:
  // Throws Error for a patience below 1, and for a least_change that is negative or NaN.
  explicit EarlyStopping(const EarlyStoppingOptions& options = {},
                         CallSite site = CallSite::here());

  struct Update {
    bool best;  // this metric is the best so far, which NaN never is
    bool stop;  // should_stop()
    explicit operator bool() const noexcept { return best; }
  };

  // Takes the metric after an epoch. True where it is the best so far.
  Update update(double metric) noexcept;
  // Likewise; a best update also copies the values of parameters and states to the host, which
  // memory::summary(Device::cpu()) counts. They must be the same set each time. Throws Error for a
  // graph's parameters and for another set than before, OutOfMemory; then the metric has not been
  // taken. Takes host memory for a second copy meanwhile.
  Update update(double metric, const Parameters& parameters, CallSite site = CallSite::here());
  // Sets parameters and states to the values of the best update. Slots stay. Throws Error if no
  // update has kept values, or for another set of parameters.
  void restore(const Parameters& parameters, CallSite site = CallSite::here()) const;

  bool should_stop() const noexcept { return since_best_ >= options_.patience; }
  // The best metric so far; before the first, +infinity, or -infinity if higher is better.
  double best() const noexcept {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return best_.value_or(options_.higher_is_better ? -infinity : infinity);
  }

 private:
  struct Value {
    std::string name;
    Spec spec;
  };
  bool is_better(double metric) const noexcept;
  void check_same(const Parameters& parameters, const char* what) const;

  EarlyStoppingOptions options_;
  std::optional<double> best_;  // of all metrics so far
  std::int64_t since_best_ = 0;
  std::vector<Value> values_;  // names and specs of the values in bytes_, in order
  HostBytes bytes_;
  bool has_values_ = false;  // not if they were on a simulated device
};

}  // namespace ebb
