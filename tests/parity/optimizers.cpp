// Optimizers, schedules, clipping, averages.
#include "ebb/tests/parity/optimizers.h"

namespace ebb::tests::parity {

EBB_STEPS("optim.SGD(p, 0.1)", Sgd({.learning_rate = 0.1}));
EBB_STEPS("optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.05)",
          Sgd({.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.05}));
EBB_STEPS("optim.SGD(p, 0.1, momentum=0.9, nesterov=True)",
          Sgd({.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}));
EBB_STEPS("optim.Adam(p, eps=1e-2)", Adam({.epsilon = 1e-2}));
EBB_STEPS("optim.Adam(p, weight_decay=0.1)", Adam({.weight_decay = 0.1}));
EBB_STEPS("optim.AdamW(p)", AdamW());
EBB_STEPS("optim.RMSprop(p, eps=1e-2)", Rmsprop({.epsilon = 1e-2}));
EBB_STEPS("optim.RMSprop(p, momentum=0.9, centered=True)",
          Rmsprop({.momentum = 0.9, .centered = true}));
EBB_STEPS("optim.Adagrad(p, initial_accumulator_value=0.1)", Adagrad({.initial_sum = 0.1}));

EBB_RATES("StepLR(o, 3, gamma=0.5)", step_decay(0.5, {.factor = 0.5, .every = 3}));
EBB_RATES("ExponentialLR(o, 0.9)", exponential_decay(0.5, {.factor = 0.9, .every = 1}));
EBB_RATES("PolynomialLR(o, 10, power=2)", polynomial_decay(0.5, 2, {.warm_up = 1, .steps = 11}));
EBB_RATES("LinearLR(o, 0.25, total_iters=3)", linear_warm_up(0.5, 4));
EBB_RATES("CosineAnnealingLR(o, 13, eta_min=0.1)",
          cosine(0.5, {.warm_up = 1, .steps = 14, .end = 0.1}));

EBB_GIVES("nn.utils.clip_grad_norm_(p, 0.7)") {
  const optim::ClippedGradients clipped = optim::clip_by_global_norm({x[0], x[1]}, 0.7);
  return Tensors{clipped.gradients[0], clipped.gradients[1], cast(clipped.norm, DType::f32)};
}
EBB_GIVES("nn.utils.clip_grad_value_(p, 0.7)") { return optim::clip_by_value({x[0], x[1]}, 0.7); }
EBB_GIVES("swa_utils.get_ema_multi_avg_fn(0.9)") {
  return averages(x[0], [](const Parameters& params) {
    return optim::MovingAverage(params, {.decay = 0.9, .bias_corrected = false});
  });
}

}  // namespace ebb::tests::parity
