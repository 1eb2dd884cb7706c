// The bundled models learn their tasks, alike in both modes, in the predicted memory.
#include "ebb/examples/common/training.h"

#include <array>

#include "ebb/core/kernels/workers.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"

using namespace ebb;
using namespace examples;

namespace {

struct Run {
  Training training;
  memory::Measurement measurement;
};

// The model's defaults, on the GPU if there is one.
Options defaults_here(const std::string& model) {
  Options options = defaults(model);
  options.device = Device::best();
  return options;
}

Run run(const Problem& problem, Options options, Mode mode) {
  options.mode = mode;
  memory::Comparison comparison(options.device);
  Training training = measure(comparison, problem, options);
  return {std::move(training), comparison.results()[0]};
}

void check_prediction(const Run& run) {
  const memory::Footprint &predicted = run.measurement.predicted,
                          &measured = run.measurement.measured;
  CHECK(predicted.peak_bytes == measured.peak_bytes);
  CHECK(predicted.step_peak_bytes == measured.step_peak_bytes);
  CHECK(predicted.held_between_steps_bytes == measured.held_between_steps_bytes);
  CHECK(predicted.by_category == measured.by_category);
  CHECK(measured.end_bytes == 0);
  if (run.training.session) {
    CHECK(run.training.session->planned_peak_bytes == run.training.session->peak_bytes);
    CHECK(run.training.session->reserved_after_close_bytes == 0);
  }
}

// A number of CPU threads, in a scope.
class Threads {
 public:
  explicit Threads(int threads) : before_(Workers::instance().threads()) {
    Workers::instance().set_threads(threads);
  }
  ~Threads() { Workers::instance().set_threads(before_); }

 private:
  const int before_;
};

}  // namespace

TEST_CASE("the classifier recognises 96 of 100 digits it has not seen, for any seed") {
  for (const std::uint64_t seed : {7u, 1u, 2u, 3u}) {
    Options options = defaults_here("mlp");
    options.seed = seed;
    const Problem problem = make_problem(options);
    const Run eager = run(problem, options, Mode::eager);
    CHECK(*eager.training.epochs.back().metric >= 0.96);
    check_prediction(eager);
  }
}

TEST_CASE("the forecaster is as good as an autoregression of order 24, but for what seeds differ") {
  const Options options = defaults_here("lstm");
  const Problem problem = make_problem(options);
  const Run graph = run(problem, options, Mode::graph);
  REQUIRE(problem.baselines.size() == 2);
  const double last = problem.baselines[0].metric, autoregression = problem.baselines[1].metric;
  CHECK(autoregression < 0.92 * last);  // as measured elsewhere: about 10 %
  CHECK(*graph.training.epochs.back().metric <= 1.01 * autoregression);
  check_prediction(graph);
}

TEST_CASE("all modes train alike bit for bit, on one thread and on two, cut or whole") {
  for (const char* model : {"lstm", "mlp"})
    for (const std::int64_t accumulate : {1, 4}) {
      Options options = defaults_here(model);
      options.epochs = 2;
      options.accumulate = accumulate;
      const Problem problem = make_problem(options);
      const Run graph = run(problem, options, Mode::graph);
      const Run eager = run(problem, options, Mode::eager);
      const Run compiled = run(problem, options, Mode::compiled);
      for (const Run* each : {&graph, &eager, &compiled}) {
        check_prediction(*each);
        CHECK(each->measurement.losses.size() > 20);
        CHECK(each->measurement.losses == eager.measurement.losses);
      }
      for (const int threads : {1, 2}) {
        const Threads scope(threads);
        CHECK(run(problem, options, Mode::eager).measurement.losses == eager.measurement.losses);
      }
    }
}

TEST_CASE("accumulating over micro-batches lowers the peak of a step") {
  Options options = defaults_here("lstm");
  options.epochs = 1;
  const Problem problem = make_problem(options);
  for (const Mode mode : kModes) {
    options.accumulate = 1;
    const std::size_t whole = run(problem, options, mode).measurement.measured.step_peak_bytes;
    options.accumulate = 4;
    CHECK(run(problem, options, mode).measurement.measured.step_peak_bytes < whole / 2);
  }
}

TEST_CASE("micro-batches chosen to fit run under the limit, and fewer of them do not") {
  for (const Mode mode : kModes) {
    Options options = defaults_here("lstm");
    options.epochs = 1;
    options.device = Device::cpu();
    options.memory_limit = std::size_t{4} << 20;
    options.accumulates_to_fit = true;
    const Problem problem = make_problem(options);
    Options chosen = fitted(problem, options, std::array{mode});
    CAPTURE(static_cast<int>(mode), chosen.accumulate);
    REQUIRE(chosen.accumulate > 1);
    CHECK(chosen.batch == options.batch);
    const Run fits = run(problem, chosen, mode);
    CHECK(fits.measurement.losses.size() > 20);
    check_prediction(fits);
    do --chosen.accumulate;
    while (chosen.batch % chosen.accumulate != 0);
    CHECK_THROWS_AS(run(problem, chosen, mode), OutOfMemory);
    memory::set_limit(options.device, std::nullopt);
  }
}

TEST_CASE("the limit that takes an arena between steps takes it in the prediction") {
  Options options = defaults_here("mlp");
  options.epochs = 1;
  options.batch = 60;
  options.device = Device::cpu();
  options.memory_limit = std::size_t{260} << 10;
  const Run compiled = run(make_problem(options), options, Mode::compiled);
  check_prediction(compiled);
  const auto held = compiled.measurement.measured.at("after validation");
  CHECK(held < compiled.measurement.measured.held_between_steps_bytes - 50'000);
  CHECK(held == compiled.measurement.predicted.at("after validation"));
  memory::set_limit(options.device, std::nullopt);
}

TEST_CASE("a device that is simulated predicts what the real one takes") {
  Options options = defaults_here("lstm");
  options.epochs = 1;
  const Problem problem = make_problem(options);
  for (const Mode mode : kModes) {
    options.device = Device::cpu();
    const Run real = run(problem, options, mode);
    options.device = Device::parse("sim:cpu:1GiB");
    const Run simulated = run(problem, options, mode);
    CHECK(simulated.measurement.predicted.peak_bytes == real.measurement.measured.peak_bytes);
    CHECK(simulated.measurement.losses.empty());
    CHECK_FALSE(simulated.training.epochs[0].loss.has_value());
  }
}

TEST_CASE("a run that is cut and resumed, in whichever mode, ends as one that was not") {
  const ebb::tests::TemporaryFolder folder;
  for (const char* model : {"lstm", "mlp"})
    for (const Mode mode : kModes)
      for (const std::int64_t accumulate : {1, 4}) {
        Options options = defaults_here(model);
        options.epochs = 3;
        options.batch = 60;  // does not divide the samples
        options.accumulate = accumulate;
        options.hidden = 8;
        options.layers = 1;
        const Problem problem = make_problem(options);
        const Run whole = run(problem, options, mode);
        Options saving = options;
        saving.save = folder.path("run.safetensors");
        // Cut off in the third epoch, when its metric is summarized.
        Problem cut = problem;
        cut.summarize = [&, epochs = 0](double mean) mutable {
          if (++epochs == 3) throw std::runtime_error("cut");  // as when the power fails
          return problem.summarize(mean);
        };
        CHECK_THROWS_WITH(run(cut, saving, mode), "cut");
        for (const Mode then : kModes) {
          Options resuming = options;
          resuming.resume = saving.save;
          const Run rest = run(problem, resuming, then);
          REQUIRE(rest.training.epochs.size() == 1);
          CHECK(rest.training.epochs[0].loss == whole.training.epochs[2].loss);
          CHECK(rest.training.epochs[0].metric == whole.training.epochs[2].metric);
          const auto& losses = whole.measurement.losses;
          const auto& last = rest.measurement.losses;
          REQUIRE(last.size() * 3 == losses.size());
          CHECK(std::equal(last.begin(), last.end(),
                           losses.end() - static_cast<std::ptrdiff_t>(last.size())));
          check_prediction(rest);
          resuming.epochs = 2;
          CHECK_ERROR(run(problem, resuming, then), Error,
                      "has 2 epochs already; --epochs says how many there are in all");
        }
        // The last checkpoint also resumes as the whole run.
        Options both = options;
        both.resume = both.save = saving.save;
        run(problem, both, mode);
        both.epochs = 4;
        CHECK(run(problem, both, mode).training.epochs.size() == 1);
      }
}
