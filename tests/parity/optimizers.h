// Steps of an optimizer with given gradients.
#pragma once
#include <functional>

#include "ebb/tests/parity/set.h"

namespace ebb::tests::parity {

// Returns the f64 parameter after each step from x[0] with the gradients x[1][t]. `rule` gives the
// optimizer of step t, from 0.
inline Tensors steps(const Tensors& x, const std::function<optim::Optimizer(int)>& rule) {
  const Parameters params = f64();
  const Tensor parameter = params.declare("w", x[0].shape(), initializers::zeros());
  set(params, {{"w", x[0]}});
  std::vector<Tensor> after;
  for (int t = 0; t < x[1].size(0); ++t) {
    rule(t).apply({x[1][t]}, params);
    after.push_back(parameter.detach().clone());
  }
  return {stack(after)};
}
inline Tensors steps(const Tensors& x, const optim::Optimizer& optimizer) {
  return steps(x, [&](int) { return optimizer; });
}

// Returns the averages of a parameter after it was given each of `values`. `make` gives the
// average.
inline Tensors averages(const Tensor& values,
                        optim::MovingAverage (*make)(const Parameters& params)) {
  const Parameters params = f64();
  params.declare("w", values[0].shape(), initializers::zeros());
  const optim::MovingAverage average = make(params);
  std::vector<Tensor> after;
  for (int t = 0; t < values.size(0); ++t) {
    set(params, {{"w", values[t]}});
    average.update();
    after.push_back(params["average.w"].clone());
  }
  return {stack(after)};
}

// Returns the learning rates of the first `count` steps, f64.
inline Tensors rates(const optim::LearningRate& rate, int count) {
  std::vector<double> all;
  for (int made = 0; made < count; ++made)
    all.push_back(rate.after(Tensor::full({}, made, DType::i64)).item<double>());
  return {Tensor::from(all)};
}

}  // namespace ebb::tests::parity

#define EBB_STEPS_WITHIN(tolerance, name, ...)                        \
  EBB_GIVES(name, tolerance) { return steps(x, optim::__VA_ARGS__); } \
  static_assert(true)
#define EBB_STEPS(name, ...) EBB_STEPS_WITHIN(1e-11, name, __VA_ARGS__)
#define EBB_RATES_WITHIN(tolerance, name, ...)                         \
  EBB_GIVES(name, tolerance) { return rates(optim::__VA_ARGS__, 14); } \
  static_assert(true)
#define EBB_RATES(name, ...) EBB_RATES_WITHIN(1e-11, name, __VA_ARGS__)
