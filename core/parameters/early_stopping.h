#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "ebb/core/device/host_bytes.h"
#include "ebb/core/parameters/parameters.h"

namespace ebb {

struct EarlyStoppingOptions {
  std::int64_t patience = 10;     // updates in a row without a better metric, before it says stop
  double least_change = 0;        // what is better by no more than this is not better
  bool higher_is_better = false;  // an accuracy; else a loss
};

// Ends a training whose metric on held-out data gets no better, and keeps the best weights.
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
  // Throws Error for a patience below 1, a negative least_change or one that is NaN.
  explicit EarlyStopping(const EarlyStoppingOptions& options = {},
                         CallSite site = CallSite::here());

  struct Update {
    bool best;  // this metric is the best so far, which NaN never is
    bool stop;  // should_stop()
    explicit operator bool() const noexcept { return best; }
  };

  // Takes the metric after an epoch. True where it is the best so far.
  Update update(double metric) noexcept;
  // Likewise, and keeps a copy of the values of the parameters and states on the host where it is.
  // They are the same ones each time. Throws Error for a graph's and for others than before,
  // OutOfMemory; then the metric has not been taken.
  Update update(double metric, const Parameters& parameters, CallSite site = CallSite::here());
  // Sets parameters and states to the values of the best update. Slots stay. Throws Error where no
  // update has kept any, or other parameters.
  void restore(const Parameters& parameters, CallSite site = CallSite::here()) const;

  bool should_stop() const noexcept { return since_best_ >= options_.patience; }
  // The best metric; infinite, on the wrong side, before there is one.
  double best() const noexcept { return best_; }
  // Which update that was, from 0 on; -1 before there is one.
  std::int64_t best_update() const noexcept { return best_update_; }

 private:
  struct Value {
    std::string name;
    Spec spec;
  };
  bool is_better(double metric) const noexcept;
  void check_same(const Parameters& parameters, const char* what) const;

  EarlyStoppingOptions options_;
  double best_ = std::numeric_limits<double>::infinity();
  std::int64_t updates_ = 0, best_update_ = -1, since_best_ = 0;
  std::vector<Value> values_;  // what is kept, one behind the other in:
  HostBytes bytes_;
};

}  // namespace ebb
