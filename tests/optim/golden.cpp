// Update rules in both modes, against PyTorch's (tests/golden/make_optimizers.py).
#include "ebb/tests/golden/golden.h"

#include <functional>
#include <map>

#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/update.h"
#include "ebb/graph/session.h"
#include "ebb/optim/adagrad.h"
#include "ebb/optim/adam.h"
#include "ebb/optim/average.h"
#include "ebb/optim/lion.h"
#include "ebb/optim/rmsprop.h"
#include "ebb/optim/sgd.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

constexpr int kSteps = 20;

std::map<std::string, optim::Optimizer> cases() {
  return {
      {"sgd", optim::Sgd({.learning_rate = 0.1})},
      {"sgd_weight_decay", optim::Sgd({.learning_rate = 0.1, .weight_decay = 0.05})},
      {"sgd_momentum", optim::Sgd({.learning_rate = 0.1, .momentum = 0.9})},
      {"sgd_nesterov",
       optim::Sgd({.learning_rate = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.05})},
      {"adam", optim::Adam({.learning_rate = 0.01})},
      {"adam_options", optim::Adam({.learning_rate = 0.01,
                                    .beta1 = 0.8,
                                    .beta2 = 0.95,
                                    .epsilon = 1e-4,
                                    .weight_decay = 0.05})},
      {"adamw", optim::AdamW({.learning_rate = 0.01, .weight_decay = 0.1})},
      {"adam_cosine", optim::Adam({.learning_rate = optim::cosine(
                                       0.05, {.warm_up = 4, .steps = 16, .end = 1e-3})})},
      {"rmsprop", optim::Rmsprop()},
      {"rmsprop_momentum",
       optim::Rmsprop({.decay = 0.9, .epsilon = 1e-4, .momentum = 0.8, .weight_decay = 0.05})},
      {"rmsprop_centered", optim::Rmsprop({.decay = 0.9, .epsilon = 1e-3, .centered = true})},
      {"rmsprop_centered_momentum",
       optim::Rmsprop({.decay = 0.9, .epsilon = 1e-3, .momentum = 0.8, .centered = true})},
      {"adagrad", optim::Adagrad({.learning_rate = 0.1})},
      {"adagrad_options", optim::Adagrad({.learning_rate = 0.1,
                                          .rate_decay = 0.1,
                                          .initial_sum = 0.5,
                                          .epsilon = 1e-6,
                                          .weight_decay = 0.05})},
      {"sgd_step_decay",
       optim::Sgd({.learning_rate = optim::step_decay(0.1, {.factor = 0.5, .every = 6})})},
      {"sgd_exponential_decay",
       optim::Sgd({.learning_rate = optim::exponential_decay(0.1, {.factor = 0.9, .every = 1})})},
      {"sgd_polynomial_decay",
       optim::Sgd({.learning_rate = optim::polynomial_decay(0.1, 2, {.steps = 15})})},
      {"sgd_clip_value", optim::Sgd({.learning_rate = 0.1, .clip = {.value = 0.5}})},
      {"adam_clip_norm", optim::Adam({.learning_rate = 0.01, .clip = {.norm = 0.5}})},
      {"adam_clip_global_norm", optim::Adam({.learning_rate = 0.01, .clip = {.global_norm = 0.5}})},
      {"lion", optim::Lion({.learning_rate = 0.01})},
      {"lion_options",
       optim::Lion({.learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1})},
  };
}

struct Problem {
  explicit Problem(DType dtype) : dtype(dtype), golden(std::string("optimizers_") + name(dtype)) {}

  // Declares w and b. The gradients of loss(dw, db) are exactly dw and db.
  void declare(const Parameters& parameters) {
    w = parameters.declare("w", {5, 3}, initializers::zeros());
    b = parameters.declare("b", {3}, initializers::zeros());
  }
  Tensor loss(const Tensor& dw, const Tensor& db) const { return sum(w * dw) + sum(b * db); }
  Tensor gradient(const std::string& which, int step) const {
    return select(golden["gradient." + which], 0, step);
  }
  // Distance of a parameter from PyTorch's after `step` steps.
  double error(const std::string& rule, const std::string& which, const Tensor& value,
               int step) const {
    return distance(value, select(golden[rule + '.' + which], 0, step - 1));
  }

  DType dtype;
  Golden golden;
  Tensor w, b;
};

double tolerance(DType dtype) { return dtype == DType::f32 ? 1e-5 : 1e-10; }

}  // namespace

TEST_CASE("eager optimizers take the steps that PyTorch's take", "[optim]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const bool through_step = GENERATE(false, true);
  for (const auto& [rule, optimizer] : cases()) {
    CAPTURE(rule, name(dtype), through_step);
    Problem problem(dtype);
    const Parameters parameters(Device::cpu(), Seed{1}, dtype);
    problem.declare(parameters);
    assign(problem.w, problem.golden["start.w"]);
    assign(problem.b, problem.golden["start.b"]);
    for (int step = 1; step <= kSteps; ++step) {
      const Tensor loss =
          problem.loss(problem.gradient("w", step - 1), problem.gradient("b", step - 1));
      if (through_step) {
        loss.backward();
        optimizer.step(parameters);
        parameters.zero_grad();
      } else {
        optimizer.minimize(loss, parameters);
        CHECK_FALSE(problem.w.grad().defined());
      }
      REQUIRE(problem.error(rule, "w", problem.w, step) < tolerance(dtype));
      REQUIRE(problem.error(rule, "b", problem.b, step) < tolerance(dtype));
    }
  }
}

TEST_CASE("graph optimizers take the steps that PyTorch's take", "[optim]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  for (const auto& [rule, optimizer] : cases()) {
    CAPTURE(rule, name(dtype));
    Problem problem(dtype);
    Graph graph;
    const Parameters parameters(graph, Seed{1}, dtype);
    problem.declare(parameters);
    const Tensor dw = graph.placeholder("dw", dtype, {5, 3});
    const Tensor db = graph.placeholder("db", dtype, {3});
    const Tensor train = optimizer.minimize(problem.loss(dw, db), parameters);
    Session session(graph);
    session.initialize(parameters);
    session.assign(problem.w, problem.golden["start.w"]);
    session.assign(problem.b, problem.golden["start.b"]);
    for (int step = 1; step <= kSteps; ++step) {
      session.run(train,
                  {{dw, problem.gradient("w", step - 1)}, {db, problem.gradient("b", step - 1)}});
      REQUIRE(problem.error(rule, "w", session.value(problem.w), step) < tolerance(dtype));
      REQUIRE(problem.error(rule, "b", session.value(problem.b), step) < tolerance(dtype));
    }
  }
}

TEST_CASE("moving averages are those that PyTorch keeps, and the corrected ones their formula's",
          "[optim][average]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const bool corrected = GENERATE(false, true), as_graph = GENERATE(false, true);
  CAPTURE(name(dtype), corrected, as_graph);
  Problem problem(dtype);
  const std::string which = corrected ? "ema_corrected" : "ema";
  const optim::AverageOptions options = {.decay = 0.9, .bias_corrected = corrected};
  const auto check = [&](const Tensor& w, const Tensor& b, int step) {
    REQUIRE(problem.error(which, "w", w, step) < tolerance(dtype));
    REQUIRE(problem.error(which, "b", b, step) < tolerance(dtype));
  };
  const auto value = [&](const char* name, int step) {
    return select(problem.golden[std::string("adam.") + name], 0, step - 1);
  };
  if (as_graph) {
    Graph graph;
    const Parameters parameters(graph, Seed{1}, dtype);
    problem.declare(parameters);
    const Tensor updated = optim::MovingAverage(parameters, options).update();
    Session session(graph);
    session.initialize(parameters);
    for (int step = 1; step <= kSteps; ++step) {
      session.assign(problem.w, value("w", step));
      session.assign(problem.b, value("b", step));
      session.run(updated);
      check(session.value(parameters["average.w"]), session.value(parameters["average.b"]), step);
    }
  } else {
    const Parameters parameters(Device::cpu(), Seed{1}, dtype);
    problem.declare(parameters);
    const optim::MovingAverage average(parameters, options);
    for (int step = 1; step <= kSteps; ++step) {
      assign(problem.w, value("w", step));
      assign(problem.b, value("b", step));
      average.update();
      check(parameters["average.w"], parameters["average.b"], step);
    }
  }
}

}  // namespace ebb::tests
