// Learning rates that change with the step.
#include "ebb/ebb.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/optim/train.h"

namespace ebb::tests {
namespace {

// Returns the rates of steps 1, 2, ..., read from a parameter that starts at 0 and has a gradient
// of -1.
std::vector<double> rates(const optim::LearningRate& rate, int steps, bool as_graph) {
  const optim::Sgd sgd({.learning_rate = rate});
  const auto declare = [](const Parameters& p) { p.declare("x", {1}, initializers::zeros()); };
  std::vector<double> rates;
  double before = 0;
  for (int n = 1; n <= steps; ++n) {
    const Values values = train(
        as_graph,
        {declare, {[&](const Parameters& p) { return sgd.minimize(sum(-p["x"]), p); }}, DType::f64},
        n);
    const double now = values_of(values.at("x"))[0];
    rates.push_back(now - before);
    before = now;
  }
  return rates;
}

void check_rates(const optim::LearningRate& rate, const std::vector<double>& expected) {
  for (const bool as_graph : {false, true}) {
    const std::vector<double> got = rates(rate, static_cast<int>(expected.size()), as_graph);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(as_graph, i + 1);
      CHECK(std::abs(got[i] - expected[i]) < 1e-14);
    }
  }
}

}  // namespace

TEST_CASE("schedules have the rates of their formulas", "[optim][schedule]") {
  check_rates(optim::linear_warm_up(0.8, 4), {0.2, 0.4, 0.6, 0.8, 0.8, 0.8});
  check_rates(optim::linear_warm_up(0.8, 0), {0.8, 0.8});
  check_rates(optim::linear_decay(1, {.steps = 4, .end = 0.2}), {0.8, 0.6, 0.4, 0.2, 0.2});
  check_rates(optim::linear_decay(1, {.warm_up = 2, .steps = 4}), {0.5, 1, 0.5, 0, 0});
  check_rates(optim::polynomial_decay(1, 2, {.steps = 4}), {0.5625, 0.25, 0.0625, 0, 0});
  check_rates(optim::step_decay(1, {.factor = 0.5, .every = 2}), {1, 1, 0.5, 0.5, 0.25});
  check_rates(optim::step_decay(1, {.factor = 0.5, .every = 2, .warm_up = 2}),
              {0.5, 1, 1, 0.5, 0.5, 0.25});
  check_rates(optim::exponential_decay(1, {.factor = 0.25, .every = 2}), {1, 0.5, 0.25, 0.125});
  check_rates(optim::exponential_decay(1, {.factor = 0.25, .every = 2, .warm_up = 2}),
              {0.5, 1, 0.5, 0.25});
}

}  // namespace ebb::tests
