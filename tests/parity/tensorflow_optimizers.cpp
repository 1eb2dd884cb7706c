// TensorFlow's and Keras's optimizers, schedules, clipping.
#include <cmath>

#include "ebb/tests/parity/optimizers.h"

namespace ebb::tests::parity {
namespace {

// TensorFlow 1's RMSProp: the mean of squares starts at 1, and epsilon is inside the root.
struct RmspropFromOne final : optim::Rule {
  const char* name() const noexcept override { return "rmsprop_from_one"; }
  std::span<const char* const> slots() const noexcept override { return kSlots; }
  optim::RuleResult update(const optim::RuleInput& in) const override {
    const Tensor mean = 0.9 * in.slots[0] + 0.1 * (square(in.gradient) - 1);  // the mean minus 1
    return {in.parameter - in.rate * in.gradient / sqrt(mean + (1 + 1e-2)), {mean}};
  }
  static constexpr const char* kSlots[] = {"square_mean"};
};

// TensorFlow adds epsilon to the root of the second moment before the bias correction.
optim::Optimizer adam_with_epsilon_hat(int step, double rate) {
  return optim::Adam(
      {.learning_rate = rate, .epsilon = 1e-2 / std::sqrt(1 - std::pow(0.999, step + 1))});
}

// Tolerance: TensorFlow and Keras round rates, momenta and decays to f32 for any dtype of the
// parameter.
constexpr double kOfFloats = 1e-6;

}  // namespace

EBB_STEPS_WITHIN(kOfFloats, "tf1.train.GradientDescentOptimizer(0.1)", Sgd({.learning_rate = 0.1}));
EBB_STEPS_WITHIN(kOfFloats, "tf1.train.MomentumOptimizer(0.1, 0.9)",
                 Sgd({.learning_rate = 0.1, .momentum = 0.9}));
EBB_STEPS_WITHIN(kOfFloats, "tf1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True)",
                 Sgd({.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}));
EBB_GIVES("tf1.train.AdamOptimizer(epsilon=1e-2)", kOfFloats) {
  return steps(x, [](int t) { return adam_with_epsilon_hat(t, 1e-3); });
}
EBB_GIVES("tf1.train.RMSPropOptimizer(0.01, epsilon=1e-2)", kOfFloats) {
  return steps(x, optim::Optimizer(std::make_shared<RmspropFromOne>(), 0.01));
}
EBB_STEPS_WITHIN(kOfFloats, "tf1.train.AdagradOptimizer(0.1)",
                 Adagrad({.learning_rate = 0.1, .initial_sum = 0.1, .epsilon = 0}));
EBB_STEPS_WITHIN(kOfFloats, "keras.optimizers.SGD(0.1, momentum=0.9)",
                 Sgd({.learning_rate = 0.1, .momentum = 0.9}));
EBB_STEPS_WITHIN(kOfFloats, "keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True)",
                 Sgd({.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}));
EBB_GIVES("keras.optimizers.Adam(0.01, epsilon=1e-2)", kOfFloats) {
  return steps(x, [](int t) { return adam_with_epsilon_hat(t, 0.01); });
}
EBB_STEPS_WITHIN(kOfFloats, "keras.optimizers.AdamW(0.01, weight_decay=0.1, epsilon=1e-12)",
                 AdamW({.learning_rate = 0.01, .epsilon = 1e-12, .weight_decay = 0.1}));
EBB_STEPS_WITHIN(kOfFloats, "keras.optimizers.RMSprop(0.01, rho=0.9, epsilon=1e-12)",
                 Rmsprop({.learning_rate = 0.01, .decay = 0.9, .epsilon = 1e-12}));
EBB_STEPS_WITHIN(kOfFloats, "keras.optimizers.Lion(0.01)", Lion({.learning_rate = 0.01}));

EBB_RATES_WITHIN(kOfFloats, "tf1.train.exponential_decay(0.5, t, 3, 0.9)",
                 exponential_decay(0.5, {.factor = 0.9, .every = 3}));
EBB_RATES_WITHIN(kOfFloats, "tf1.train.exponential_decay(0.5, t, 3, 0.9, staircase=True)",
                 step_decay(0.5, {.factor = 0.9, .every = 3}));
EBB_RATES_WITHIN(kOfFloats, "tf1.train.polynomial_decay(0.5, t, 10, 0.1, power=2.)",
                 polynomial_decay(0.5, 2, {.warm_up = 1, .steps = 11, .end = 0.1}));
EBB_RATES_WITHIN(kOfFloats, "tf1.train.cosine_decay(0.5, t, 10)",
                 cosine(0.5, {.warm_up = 1, .steps = 11}));

EBB_GIVES("tf.clip_by_norm(g, 0.7), tf.clip_by_value(g, -0.7, 0.7)") {
  return Tensors{optim::clip_by_norm({x[0]}, 0.7)[0], optim::clip_by_value({x[0]}, 0.7)[0]};
}
EBB_GIVES("tf.clip_by_global_norm([g, h], 0.7)") {
  const optim::ClippedGradients clipped = optim::clip_by_global_norm({x[0], x[1]}, 0.7);
  return Tensors{clipped.gradients[0], clipped.gradients[1], clipped.norm};
}
EBB_GIVES("tf1.train.ExponentialMovingAverage(0.9)", kOfFloats) {
  return averages(x[0], [](const Parameters& params) {
    return optim::MovingAverage(params, {.decay = 0.9, .bias_corrected = false});
  });
}

}  // namespace ebb::tests::parity
