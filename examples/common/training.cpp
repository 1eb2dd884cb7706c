#include "ebb/examples/common/training.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "ebb/core/data/csv.h"
#include "ebb/ebb.h"

namespace examples {

using namespace ebb;

namespace {

// The models learn the last column of a CSV.
std::string last_column(const std::string& file) { return csv_columns(file).back(); }

Problem classification(const Options& options) {
  const std::string& data = options.data;
  const std::size_t comma = data.find(',');
  const DataSet all = comma == std::string::npos
                          ? DataSet::csv(data, {.label = last_column(data)})
                          : DataSet::idx(data.substr(0, comma), data.substr(comma + 1));
  const std::vector<std::int32_t> labels = all.targets().to_vector<std::int32_t>();
  const auto [least, most] = std::minmax_element(labels.begin(), labels.end());
  if (*least < 0 || *most > 9999)
    throw Error(data + ": classes are numbered from 0 to 9999, and one is " +
                std::to_string(*least < 0 ? *least : *most));

  const auto [training, held_out] = all.split(0.2, Seed{1});  // the same fifth for every --seed
  const std::vector<float> values = training.inputs().to_vector<float>();
  const float largest = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  const double factor = largest > 0 ? 1.0 / static_cast<double>(largest) : 1;  // pixels: 1/16
  const std::int64_t features = training.inputs().shape()[1], classes = *most + 1;
  const models::ClassifierOptions sizes{.hidden = options.hidden, .layers = options.layers};
  return {.training = training.scaled(factor),
          .held_out = held_out.scaled(factor),
          .description = std::to_string(training.size()) + " samples of " +
                         std::to_string(features) + " features in " + std::to_string(classes) +
                         " classes, " + std::to_string(held_out.size()) + " held out",
          .metric = "accuracy",
          .build = [=](const Parameters& parameters) -> Model {
            const models::Classifier classifier(parameters, features, classes, sizes);
            return [classifier](const Tensor& x, Phase) { return classifier(x); };
          },
          .loss = [](const Tensor& scores,
                     const Tensor& labels) { return softmax_cross_entropy(scores, labels); },
          .score = [](const Tensor& scores,
                      const Tensor& labels) { return metrics::accuracy(scores, labels); },
          .summarize = [](double mean) { return mean; }};
}

// Root mean square error of one-step forecasts of series[boundary ...], each from all values before
// it.
template <class Forecast>
double error_of(std::span<const double> series, std::size_t boundary, const Forecast& forecast) {
  double sum = 0;
  for (std::size_t target = boundary; target < series.size(); ++target) {
    const double error = forecast(target) - series[target];
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(series.size() - boundary));
}

// Error of forecasts by a constant and `order` coefficients, fitted to series[order ... boundary)
// by least squares. Nothing where the fit has no unique solution.
std::optional<double> autoregression_error(std::span<const double> series, std::size_t boundary,
                                           std::size_t order) {
  const std::size_t n = order + 1;
  if (boundary <= order + n) return {};
  // Regressor i of the forecast: 1 for the constant, then the values before the target, latest
  // first.
  const auto factor = [&](std::size_t target, std::size_t i) {
    return i == 0 ? 1.0 : series[target - i];
  };
  // The normal equations, n rows of n + 1 columns. They are positive definite, so Gauss needs no
  // pivots.
  std::vector<std::vector<double>> rows(n, std::vector<double>(n + 1));
  for (std::size_t target = order; target < boundary; ++target)
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) rows[i][j] += factor(target, i) * factor(target, j);
      rows[i][n] += factor(target, i) * series[target];
    }
  std::vector<double> diagonal(n);
  for (std::size_t i = 0; i < n; ++i) diagonal[i] = rows[i][i];
  for (std::size_t pivot = 0; pivot < n; ++pivot) {
    if (!(rows[pivot][pivot] > 1e-12 * diagonal[pivot])) return {};
    for (std::size_t i = 0; i < n; ++i) {
      const double ratio = i == pivot ? 0 : rows[i][pivot] / rows[pivot][pivot];
      for (std::size_t j = pivot; j <= n; ++j) rows[i][j] -= ratio * rows[pivot][j];
    }
  }
  return error_of(series, boundary, [&](std::size_t target) {
    double forecast = 0;
    for (std::size_t i = 0; i < n; ++i) forecast += rows[i][n] / rows[i][i] * factor(target, i);
    return forecast;
  });
}

Problem forecasting(const Options& options) {
  const TimeSeries series = TimeSeries::csv(options.data, {.value = last_column(options.data)});
  const Windows windows = series.windows({.length = options.length, .validation = 0.2});
  const std::int64_t held_out = windows.validation.size();

  const auto values = std::span(series.values());
  const std::size_t boundary = values.size() - static_cast<std::size_t>(held_out);
  std::vector<Baseline> baselines = {
      {"the last value again",
       error_of(values, boundary, [&](std::size_t target) { return values[target - 1]; })}};
  if (const auto error = autoregression_error(values, boundary, 24))
    baselines.push_back({"an autoregression of order 24", *error});

  const models::LstmOptions sizes{.hidden = options.hidden, .layers = options.layers};
  return {.training = windows.training,
          .held_out = windows.validation,
          .description = std::to_string(series.size()) + " values in windows of " +
                         std::to_string(options.length) + ", the last " + std::to_string(held_out) +
                         " held out",
          .metric = "RMSE",
          .build = [sizes](const Parameters& parameters) -> Model {
            const models::Forecaster forecaster(parameters, 1, sizes);
            // The model learns the change from the last value: the series later reaches higher
            // than it ever did in the training part, where a network would saturate.
            return [forecaster](const Tensor& x, Phase phase) {
              return forecaster(x, phase) + last_step(x);
            };
          },
          .loss = [](const Tensor& forecast, const Tensor& next) { return mse(forecast, next); },
          .score =
              [](const Tensor& forecast, const Tensor& next) {
                const double error = metrics::rmse(forecast, next);
                return error * error;
              },
          .summarize = [deviation = windows.scale.deviation](
                           double mean) { return std::sqrt(mean) * deviation; },
          .baselines = std::move(baselines)};
}

// Adam with a learning rate that falls along a cosine: one update per batch, whether it comes whole
// or in micro-batches.
class Updates {
 public:
  Updates(const Options& options, std::int64_t samples)
      : adam_({.learning_rate = optim::cosine(
                   options.learning_rate,
                   {.steps = options.epochs * ((samples + options.batch - 1) / options.batch)})}),
        accumulator_(adam_, {.samples = options.batch}),
        accumulates_(options.accumulate > 1),
        leaves_rest_(accumulates_ && samples % options.batch != 0) {}

  Tensor minimize(const Tensor& loss, const Parameters& params, const Tensor& target) const {
    return accumulates_ ? accumulator_.minimize(loss, params, rows(target))
                        : adam_.minimize(loss, params);
  }
  // Whether an epoch ends with micro-batches that fill no batch, so that it needs flush().
  bool leaves_rest() const noexcept { return leaves_rest_; }
  Tensor flush(const Parameters& params) const { return accumulator_.flush(params); }

 private:
  const optim::Adam adam_;
  const optim::Accumulator accumulator_;
  const bool accumulates_, leaves_rest_;
};

using Clock = std::chrono::steady_clock;

// One training: the device it runs on and the output it shows.
struct Run {
  const Problem& problem;
  const Options& options;
  const Device& here;  // the device of the options, or its twin
  memory::Marks& mark;
  bool prints_epochs;
  std::string variant = {};

  bool predicts() const { return here != options.device; }
  std::int64_t rows() const { return std::min(options.micro_batch(), problem.training.size()); }
};

// The calls in which the modes differ.
struct Steps {
  std::function<Tensor(const Tensor& x, const Tensor& y)> train;  // a micro-batch to its loss
  std::function<void()> flush = {};  // null if no micro-batches are left over
  std::function<Tensor(const Tensor& x)> predict;
  std::function<void(const std::string& file, const DataLoader& batches)> save;
  std::function<void(const std::string& file, DataLoader& batches)> load;
};

// A mean over rows; none if there were no rows.
struct Mean {
  double sum = 0;
  std::int64_t rows = 0;
  void add(double value, const Tensor& batch) {
    rows += batch.shape()[0];
    sum += value * static_cast<double>(batch.shape()[0]);
  }
  std::optional<double> value() const {
    return rows == 0 ? std::nullopt : std::optional(sum / static_cast<double>(rows));
  }
};

// Scalars for TensorBoard, if the options ask for them.
class Scalars {
 public:
  Scalars(const Run& run, std::int64_t steps) : here_(run.here), steps_(steps) {
    const std::string& folder = run.options.tensorboard;
    if (folder.empty() || run.predicts()) return;
    writer_.emplace(folder + "/" + name(run.options.mode) + run.variant);
    peak_.emplace(here_);
  }
  void step(std::optional<double> loss) {
    ++steps_;
    add("loss/training", loss);
    if (!writer_) return;
    const memory::Stats stats = memory::stats(here_);
    add("memory/allocated", static_cast<double>(stats.allocated.current));
    add("memory/reserved", static_cast<double>(stats.reserved.current));
    add("memory/peak", static_cast<double>(peak_->bytes()));
    peak_.emplace(here_);
  }
  void add(const std::string& tag, std::optional<double> value) {
    if (writer_ && value) writer_->add_scalar(tag, *value, steps_);
  }

 private:
  const Device here_;
  std::int64_t steps_;
  std::optional<SummaryWriter> writer_;
  std::optional<memory::PeakScope> peak_;  // since the last step
};

Training train_epochs(const Run& run, const Steps& steps) {
  const Problem& problem = run.problem;
  const Options& options = run.options;
  run.mark("after build");
  DataLoader batches(problem.training,
                     {.batch = run.rows(), .shuffle = Seed{options.seed}, .device = run.here});
  DataLoader held_out(problem.held_out, {.batch = run.rows(), .device = run.here});
  if (!options.resume.empty()) {
    steps.load(options.resume, batches);
    if (batches.pass() >= options.epochs)
      throw Error(options.resume + " has " + std::to_string(batches.pass()) +
                  " epochs already; --epochs says how many there are in all");
  }
  const bool has_values = !run.here.is_simulated();
  std::optional<Progress> progress;
  if (!run.predicts() && isatty(STDOUT_FILENO))
    progress.emplace(
        (options.epochs - batches.pass()) * static_cast<std::int64_t>(batches.size()) -
            static_cast<std::int64_t>(batches.given()),
        ProgressOptions{
            .label = name(options.mode), .out = &std::cout, .terminal = true, .device = run.here});
  Scalars scalars(run, batches.pass() * batches.size() + batches.given());
  Training training;
  double seconds = 0;
  std::int64_t count = 0;
  while (batches.pass() < options.epochs) {
    const auto number = static_cast<long long>(batches.pass() + 1),
               of = static_cast<long long>(options.epochs);
    const Clock::time_point start = Clock::now();
    Epoch epoch;
    Mean loss, score;
    bool stops = false;  // asked once after each step: an epoch that has ended gets its rest
    for (auto [x, y] : batches) {
      run.mark.step(steps.train(x, y));
      const auto value = has_values ? run.mark.losses().back() : std::optional<double>();
      if (value) loss.add(*value, y);
      if (progress) progress->step(value);
      scalars.step(value);
      ++count;
      if ((stops = interrupted())) break;
    }
    if (stops) {
      if (run.predicts())
        throw Interrupted("ended by Ctrl-C while it predicted the memory, before training");
      if (!options.save.empty()) steps.save(options.save, batches);
      throw Interrupted("ended by Ctrl-C after " + std::to_string(count) + " steps" +
                        (options.save.empty() ? "" : "; the run is in " + options.save));
    }
    if (steps.flush) steps.flush();
    seconds += epoch.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    run.mark("after an epoch");
    for (auto [x, y] : held_out) {
      const Tensor scores = steps.predict(x);
      if (has_values) score.add(problem.score(scores, y), y);
    }
    run.mark("after validation");
    epoch.loss = loss.value();
    if (const auto mean = score.value()) epoch.metric = problem.summarize(*mean);
    scalars.add("validation/" + problem.metric, epoch.metric);
    if (run.prints_epochs && epoch.loss) {
      if (progress) progress->clear();
      std::printf("epoch %3lld/%lld   loss %8.5f", number, of, *epoch.loss);
      if (epoch.metric) std::printf("   held-out %s %.4f", problem.metric.c_str(), *epoch.metric);
      std::printf("   %.2f s\n", epoch.seconds);
      std::fflush(stdout);
    }
    if (!run.predicts() && !options.save.empty()) steps.save(options.save, batches);
    training.epochs.push_back(epoch);
  }
  training.steps_per_second = seconds > 0 ? static_cast<double>(count) / seconds : 0;
  return training;
}

Shape batch_of(const Tensor& samples, std::int64_t rows) {
  Shape shape = samples.shape();
  shape.set(0, rows);
  return shape;
}

// The model's scores for training, with the options' way of keeping activations.
Tensor scores_of(const Run& run, const Model& model, const Tensor& x) {
  if (!run.options.recomputes) return model(x, Phase::training);
  return recompute([&model](const Tensor& in) { return model(in, Phase::training); }, x);
}

Training train_as_graph(const Run& run) {
  const Problem& problem = run.problem;
  const Options& options = run.options;
  const Tensor &inputs = problem.training.inputs(), &targets = problem.training.targets();
  Graph graph;
  const Tensor x = graph.placeholder("x", inputs.dtype(), batch_of(inputs, kOpen));
  const Tensor y = graph.placeholder("y", targets.dtype(), batch_of(targets, kOpen));
  Parameters params(graph, Seed{options.seed});
  const Model model = problem.build(params);
  const Tensor scores = model(x, Phase::inference);
  const Updates updates(options, problem.training.size());
  const Tensor train = updates.minimize(problem.loss(scores_of(run, model, x), y), params, y);
  const Tensor rest = updates.leaves_rest() ? updates.flush(params) : Tensor();

  SessionFigures figures;
  const FedShapes shapes = {{x, batch_of(inputs, run.rows())}, {y, batch_of(targets, run.rows())}};
  memory::PlanOptions planned = {.details = !options.report.empty()};
  if (options.has_budget)
    planned.budget = (graph.plan({train}, shapes, run.here).reserved_bytes +
                      graph.least_budget({train}, shapes, run.here)) /
                     2;
  memory::Plan plan = graph.plan({train}, shapes, run.here, planned);
  figures.planned_peak_bytes = plan.peak_bytes;
  run.mark.plan(std::move(plan));
  Session session(graph, {.device = run.here, .budget = planned.budget});
  session.initialize(params);
  PreparedStep step = session.prepare(train, {x, y});
  PreparedStep predict = session.prepare(scores, {x});
  Steps steps{.train = [&](const Tensor& bx, const Tensor& by) { return step(bx, by); },
              .predict = [&](const Tensor& bx) { return predict(bx); },
              .save = [&](const std::string& file,
                          const DataLoader& batches) { session.save(file, batches); },
              .load = [&](const std::string& file,
                          DataLoader& batches) { session.restore(file, batches); }};
  if (rest.defined()) steps.flush = [&] { session.run(rest); };
  Training training = train_epochs(run, steps);
  run.mark(kTrained);
  figures.peak_bytes = session.stats().allocated.peak;
  session.close();
  figures.reserved_after_close_bytes = session.stats().reserved.current;
  training.parameters = params.count();
  training.session = figures;
  return training;
}

// Eagerly, or with the same lines compiled.
Training train_eagerly(const Run& run) {
  const Problem& problem = run.problem;
  const Options& options = run.options;
  Parameters params(run.here, Seed{options.seed});
  const Model model = problem.build(params);
  const Updates updates(options, problem.training.size());
  Steps steps{
      .train =
          [&](const Tensor& x, const Tensor& y) {
            return updates.minimize(problem.loss(scores_of(run, model, x), y), params, y);
          },
      .predict =
          [&](const Tensor& x) {
            const NoGrad no_grad;
            return model(x, Phase::inference);
          },
      .save = [&](const std::string& file,
                  const DataLoader& batches) { params.save(file, batches); },
      .load = [&](const std::string& file, DataLoader& batches) { params.load(file, batches); }};
  if (updates.leaves_rest()) steps.flush = [&] { updates.flush(params); };
  if (options.mode == Mode::compiled) {
    const auto step = compile(std::move(steps.train), {.details = !options.report.empty()});
    steps.train = [&run, step, has_plan = false](const Tensor& x, const Tensor& y) mutable {
      Tensor loss = step(x, y);
      if (!std::exchange(has_plan, true)) run.mark.plan(step.plan(x, y));  // no further trace
      return loss;
    };
  }
  Training training = train_epochs(run, steps);
  run.mark(kTrained);
  training.parameters = params.count();
  return training;
}

}  // namespace

Problem make_problem(const Options& options) {
  return options.model == "lstm" ? forecasting(options) : classification(options);
}

Options fitted(const Problem& problem, Options options, std::span<const Mode> modes) {
  if (!options.accumulates_to_fit) return options;
  const std::size_t limit = options.memory_limit.value_or(memory::available(options.device));
  const auto train = [&](const Device& twin, Mode mode, std::int64_t rows,
                         std::int64_t accumulate) {
    Options once = options;
    once.mode = mode;
    once.epochs = 1;  // they are all alike
    once.accumulate = accumulate;
    once.batch = rows * accumulate;
    once.resume.clear();
    memory::Marks mark(twin);
    const Run run{problem, once, twin, mark, false};
    mode == Mode::graph ? train_as_graph(run) : train_eagerly(run);
  };
  for (const Mode mode : modes) {
    // A whole batch needs no memory for sums of gradients.
    const memory::Prediction whole = memory::predict(
        options.device, [&](const Device& twin) { train(twin, mode, options.batch, 1); });
    if (whole.least_limit_bytes <= limit) continue;
    const memory::MicroBatch fit = memory::fit_micro_batch(
        options.device, options.batch, limit,
        [&](const Device& twin, std::int64_t rows) { train(twin, mode, rows, 2); });
    while (options.batch % options.accumulate != 0 || options.micro_batch() > fit.size ||
           options.accumulate < 2)
      ++options.accumulate;
  }
  const auto parts = static_cast<long long>(options.accumulate);
  std::printf("%s of %lld samples fit %s\n",
              parts == 1 ? "whole batches" : (std::to_string(parts) + " micro-batches").c_str(),
              static_cast<long long>(options.micro_batch()), memory::figure(limit).c_str());
  return options;
}

Training measure(memory::Comparison& comparison, const Problem& problem, const Options& options,
                 bool prints_epochs, const std::string& variant) {
  Training training;
  comparison.measure(name(options.mode) + variant, [&](Device here, memory::Marks& mark) {
    const Run run{problem, options, here, mark, prints_epochs && here == options.device, variant};
    if (!run.predicts()) memory::reset_peaks(here);  // the status line shows one
    if (options.memory_limit)  // on top of the bytes held, on the CPU the data
      memory::set_limit(here, memory::stats(here).reserved.current + *options.memory_limit);
    training = options.mode == Mode::graph ? train_as_graph(run) : train_eagerly(run);
  });
  return training;
}

}  // namespace examples
