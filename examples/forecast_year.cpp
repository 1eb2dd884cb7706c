// Forecasts twelve months at once, as a graph, and compares that with two free baselines.
//
// The window is one solar cycle. Its first year is the forecast that the cycle repeats, its last
// month the forecast that nothing changes.
#include <cstdio>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;

constexpr std::int64_t kCycle = 132, kMonths = 12, kBatch = 64, kEpochs = 12;

struct Forecaster {
  models::Lstm lstm;
  models::Dense out;
  explicit Forecaster(const Parameters& p)
      : lstm(p.scope("lstm"), 1, {.hidden = 32}), out(p.scope("out"), 32, kMonths) {}
  // past [batch, kCycle, 1] to the months that follow, [batch, kMonths]. Learns their change from
  // the last value.
  Tensor operator()(const Tensor& past, Phase phase) const {
    const Tensor seen = last_step(lstm(past).sequence);
    return out(dropout(seen, 0.1, phase)) + last_step(past);
  }
};

void run(const examples::Arguments& told) {
  const TimeSeries sunspots =
      TimeSeries::csv(EBB_EXAMPLES_DATA "/sunspots.csv", {.value = "sunspots"});
  const Windows windows = sunspots.windows({.length = kCycle, .steps = kMonths});
  DataLoader batches(
      windows.training,
      {.batch = kBatch, .shuffle = Seed{1}, .drop_last = true, .device = told.device});

  Graph graph;
  const Tensor past = graph.placeholder("past", DType::f32, {-1, kCycle, 1});
  const Tensor next = graph.placeholder("next", DType::f32, {-1, kMonths});
  const Parameters params(graph, Seed{7});
  const Forecaster forecaster(params);
  const optim::Adam adam(
      {.learning_rate = optim::cosine(5e-3, {.warm_up = 30, .steps = kEpochs * batches.size()}),
       .clip = {.global_norm = 1}});
  const Tensor train = adam.minimize(mse(forecaster(past, Phase::training), next), params);
  const Tensor forecast = forecaster(past, Phase::inference);
  const memory::Plan plan =
      graph.plan({train}, {{past, {kBatch, kCycle, 1}}, {next, {kBatch, kMonths}}}, told.device);

  if (told.device.is_simulated()) return examples::print_peak(plan.peak_bytes);
  Session session(graph, {.device = told.device, .seed = Seed{3}});
  session.initialize(params);
  if (!told.resume.empty()) session.restore(told.resume, batches);
  auto step = session.prepare(train, {past, next});
  const bool trains = batches.pass() < kEpochs;
  while (batches.pass() < kEpochs) {
    for (const auto& [x, y] : batches) step(x, y);
    if (!told.save.empty()) session.save(told.save, batches);
  }
  if (trains) examples::print_peak(plan.peak_bytes, session.stats().allocated.peak);

  const Tensor x = windows.validation.inputs(), y = windows.validation.targets();
  const auto error = [&](const Tensor& forecasts) {
    return metrics::rmse(broadcast_to(forecasts, y.shape()), y) * windows.scale.deviation;
  };
  std::printf(
      "RMSE of twelve months, %d times, held out: last month %.2f, last cycle %.2f, LSTM %.2f\n",
      static_cast<int>(y.size(0)), error(last_step(x)),
      error(squeeze(slice(x, 0, kMonths, {.axis = 1}), 2)),
      error(session.run(forecast, {{past, x}})));
}

int main(int argc, char** argv) {
  return examples::train_example(argc, argv, "Forecasts twelve months at once.", run);
}
