// Update rules in both modes, against PyTorch's (tests/golden/make_optimizers.py).
#include "ebb/tests/golden/golden.h"
#include "ebb/ebb.h"

#include <map>

#include "ebb/tests/catch.h"
#include "ebb/tests/in_mode.h"

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

TEST_CASE("optimizers take the steps that PyTorch's take, in both modes", "[optim]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const bool as_graph = GENERATE(false, true), through_step = GENERATE(false, true);
  if (as_graph && through_step) return;
  for (const auto& [rule, optimizer] : cases()) {
    CAPTURE(rule, name(dtype), as_graph, through_step);
    InMode mode(as_graph, dtype);
    Problem problem(dtype);
    problem.declare(mode.parameters);
    const auto make_step = mode.function({{dtype, {5, 3}}, {dtype, {3}}},
                                         [&, &by = optimizer](const Tensors& in) -> Tensors {
                                           const Tensor loss = problem.loss(in[0], in[1]);
                                           if (!through_step)
                                             return {by.minimize(loss, mode.parameters)};
                                           loss.backward();
                                           by.step(mode.parameters);
                                           mode.parameters.zero_grad();
                                           return {};
                                         });
    for (const char* which : {"w", "b"})
      mode.assign(which, problem.golden[std::string("start.") + which]);
    for (int step = 1; step <= kSteps; ++step) {
      make_step({problem.gradient("w", step - 1), problem.gradient("b", step - 1)});
      if (!as_graph) CHECK_FALSE(problem.w.grad().defined());
      for (const char* which : {"w", "b"})
        REQUIRE(problem.error(rule, which, mode[which], step) < tolerance(dtype));
    }
  }
}

TEST_CASE("moving averages are those that PyTorch keeps, and the corrected ones their formula's",
          "[optim][average]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const bool corrected = GENERATE(false, true), as_graph = GENERATE(false, true);
  CAPTURE(name(dtype), corrected, as_graph);
  InMode mode(as_graph, dtype);
  Problem problem(dtype);
  problem.declare(mode.parameters);
  const optim::MovingAverage average(mode.parameters, {.decay = 0.9, .bias_corrected = corrected});
  const auto update = mode.function([&] { return average.update(); });
  for (int step = 1; step <= kSteps; ++step) {
    for (const std::string which : {"w", "b"})
      mode.assign(which, select(problem.golden["adam." + which], 0, step - 1));
    update({});
    for (const std::string which : {"w", "b"})
      REQUIRE(problem.error(corrected ? "ema_corrected" : "ema", which, mode["average." + which],
                            step) < tolerance(dtype));
  }
}

}  // namespace ebb::tests
