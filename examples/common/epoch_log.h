#pragma once
#include <chrono>
#include <cstdint>

#include "ebb/examples/common/training.h"

namespace examples {

// Keeps what a training loop does, epoch by epoch, and tells it to whoever looks on. On a simulated
// device there are no values: losses and metrics stay empty.
class EpochLog {
 public:
  EpochLog(const Problem& problem, const Options& options, const ebb::Device& here,
           Progress& progress);

  // So many epochs were trained before.
  void resume_behind(std::int64_t epochs) noexcept { before_ = epochs; }
  void begin_epoch();
  // After mark.step(loss), for a batch of so many rows.
  void step(const ebb::memory::Marks& mark, std::int64_t rows);
  void trained();  // the epoch's steps are over
  void score(const ebb::Tensor& scores, const ebb::Tensor& target);
  void end_epoch();
  Training finish(std::int64_t parameters);

 private:
  using Clock = std::chrono::steady_clock;

  const Problem& problem_;
  const ebb::Device here_;
  Progress& progress_;
  const std::int64_t epochs_;
  Training training_;
  std::int64_t before_ = 0;  // epochs of the run that goes on
  std::int64_t steps_ = 0;
  double seconds_ = 0;

  // Of this epoch.
  Clock::time_point start_;
  double loss_sum_ = 0, metric_sum_ = 0;
  std::int64_t loss_rows_ = 0, metric_rows_ = 0;
};

}  // namespace examples
