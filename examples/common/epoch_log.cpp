#include "ebb/examples/common/epoch_log.h"

namespace examples {

EpochLog::EpochLog(const Problem& problem, const Options& options, const ebb::Device& here,
                   Progress& progress)
    : problem_(problem), here_(here), progress_(progress), epochs_(options.epochs) {}

void EpochLog::begin_epoch() {
  loss_sum_ = metric_sum_ = 0;
  loss_rows_ = metric_rows_ = 0;
  start_ = Clock::now();
}

void EpochLog::step(const ebb::memory::Marks& mark, std::int64_t rows) {
  ++steps_;
  if (!mark.losses().empty()) {
    loss_sum_ += mark.losses().back() * static_cast<double>(rows);
    loss_rows_ += rows;
  }
  progress_.step(here_, before_ + static_cast<std::int64_t>(training_.epochs.size()) + 1, epochs_,
                 mark.losses());
}

void EpochLog::trained() {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  seconds_ += seconds;
  training_.epochs.push_back({{}, {}, seconds});
  if (loss_rows_ > 0) training_.epochs.back().loss = loss_sum_ / static_cast<double>(loss_rows_);
}

void EpochLog::score(const ebb::Tensor& scores, const ebb::Tensor& target) {
  if (here_.is_simulated()) return;
  metric_sum_ += problem_.add_up(scores, target);
  metric_rows_ += target.shape()[0];
}

void EpochLog::end_epoch() {
  Epoch& epoch = training_.epochs.back();
  if (metric_rows_ > 0) epoch.metric = problem_.summarize(metric_sum_, metric_rows_);
  progress_.epoch(before_ + static_cast<std::int64_t>(training_.epochs.size()), epochs_, epoch.loss,
                  problem_.metric(), epoch.metric, epoch.seconds);
}

Training EpochLog::finish(std::int64_t parameters) {
  progress_.clear();
  training_.parameters = parameters;
  training_.steps_per_second = seconds_ > 0 ? static_cast<double>(steps_) / seconds_ : 0;
  return std::move(training_);
}

}  // namespace examples
