#pragma once
#include <cmath>

#include "ebb/optim/kernels/update.h"

namespace ebb::optim {

struct AdamAttributes {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  double clip_value = 0;
  std::int64_t decoupled = 0;  // 1: AdamW, p -= rate wd p; 0: wd p is added to the gradient
};

// Adam of Kingma & Ba with bias correction as PyTorch computes it (denominator
// sqrt(v) / sqrt(1 - beta2^t) + epsilon). Slots m and v.
struct AdamUpdate {
  static constexpr int kSlots = 2;
  using Attributes = AdamAttributes;

  template <class T>
  struct Constants {
    T beta1, beta2, one_minus_beta1, one_minus_beta2;
    T step_size, sqrt_correction, epsilon, decay, keep;
  };
  template <class T>
  EBB_HOST_DEVICE static Constants<T> constants(const Attributes& a, double step, double rate) {
    const bool decoupled = a.decoupled != 0;
    return {.beta1 = static_cast<T>(a.beta1),
            .beta2 = static_cast<T>(a.beta2),
            .one_minus_beta1 = static_cast<T>(1 - a.beta1),
            .one_minus_beta2 = static_cast<T>(1 - a.beta2),
            .step_size = static_cast<T>(rate / (1 - std::pow(a.beta1, step))),
            .sqrt_correction = static_cast<T>(std::sqrt(1 - std::pow(a.beta2, step))),
            .epsilon = static_cast<T>(a.epsilon),
            .decay = static_cast<T>(decoupled ? 0 : a.weight_decay),
            .keep = static_cast<T>(decoupled ? 1 - rate * a.weight_decay : 1)};
  }
  template <class T>
  EBB_HOST_DEVICE static void update(const Constants<T>& c, T (&x)[1 + kSlots], T g) {
    g += c.decay * x[0];
    x[1] = c.beta1 * x[1] + c.one_minus_beta1 * g;
    x[2] = c.beta2 * x[2] + c.one_minus_beta2 * (g * g);
    x[0] = c.keep * x[0] - c.step_size * x[1] / (std::sqrt(x[2]) / c.sqrt_correction + c.epsilon);
  }
};

}  // namespace ebb::optim
