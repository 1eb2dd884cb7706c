// Learning rates that change with the step.
#include "ebb/ebb.h"
#include "ebb/tests/optim/train.h"

namespace ebb::tests {
namespace {

// Checks the rates of steps 1, 2, ..., read from a parameter that has a gradient of -1.
void check_rates(const optim::LearningRate& rate, const std::vector<double>& expected) {
  for (const bool as_graph : {false, true}) {
    InMode mode(as_graph, DType::f64);
    const Tensor x = mode.parameters.declare("x", {}, initializers::zeros());
    const auto step = mode.function(
        [&] { return optim::Sgd({.learning_rate = rate}).minimize(-x, mode.parameters); });
    double before = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(as_graph, i + 1);
      step({});
      const double now = mode["x"].item<double>();
      CHECK(std::abs(now - before - expected[i]) < 1e-14);
      before = now;
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
