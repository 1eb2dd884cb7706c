#include <cmath>

#include "ebb/core/data/time_series.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/shape.h"
#include "ebb/examples/common/autoregression.h"
#include "ebb/examples/common/problem.h"
#include "ebb/models/forecaster.h"

namespace examples {

namespace {

using namespace ebb;

class Forecasting final : public Problem {
 public:
  Forecasting(TimeSeries series, Windows windows, const Options& options)
      : Problem(std::move(windows.training), std::move(windows.validation)),
        series_(std::move(series)),
        deviation_(windows.scale.deviation),
        options_({.hidden = options.hidden, .layers = options.layers}) {}

  std::string metric() const override { return "RMSE"; }
  std::string describe() const override {
    return std::to_string(series_.size()) + " values in windows of " +
           std::to_string(training().inputs().shape()[1]) + ", the last " +
           std::to_string(held_out().size()) + " held out";
  }
  Model build(const Parameters& parameters) const override {
    const models::Forecaster forecaster(parameters, 1, options_);
    // The change from the last value is learned: the series later reaches higher than it ever did
    // in the training part, where a network would saturate.
    return
        [forecaster](const Tensor& x, Phase phase) { return forecaster(x, phase) + last_step(x); };
  }
  Tensor loss(const Tensor& forecast, const Tensor& next) const override {
    return mse(forecast, next);
  }

  double add_up(const Tensor& forecast, const Tensor& next) const override {
    const std::vector<float> values = forecast.to_vector<float>();
    const std::vector<float> expected = next.to_vector<float>();
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double error = static_cast<double>(values[i]) - static_cast<double>(expected[i]);
      sum += error * error;
    }
    return sum;
  }
  // In the units of the series.
  double summarize(double sum, std::int64_t rows) const override {
    return std::sqrt(sum / static_cast<double>(rows)) * deviation_;
  }

  std::vector<Baseline> baselines() const override {
    const auto values = std::span(series_.values());
    const std::size_t boundary = values.size() - static_cast<std::size_t>(held_out().size());
    std::vector<Baseline> baselines = {{"the last value again", repeat_error(values, boundary)}};
    if (const auto error = autoregression_error(values, boundary, 24))
      baselines.push_back({"an autoregression of order 24", *error});
    return baselines;
  }

 private:
  const TimeSeries series_;
  const double deviation_;
  const models::LstmOptions options_;
};

}  // namespace

std::unique_ptr<Problem> forecasting(const Options& options) {
  TimeSeries series = TimeSeries::csv(options.data, {.value = last_column(options.data)});
  Windows windows = series.windows({.length = options.length, .validation = 0.2});
  return std::make_unique<Forecasting>(std::move(series), std::move(windows), options);
}

}  // namespace examples
