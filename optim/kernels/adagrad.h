#pragma once
#include <cmath>

#include "ebb/optim/kernels/update.h"

namespace ebb::optim {

struct AdagradAttributes {
  double rate_decay = 0, initial_sum = 0, epsilon = 1e-10, weight_decay = 0;
  double clip_value = 0;
};

// PyTorch's Adagrad, with t the step. Slot s, to which `initial_sum` is added where it is read:
//   g += wd p; s += g^2; p -= rate / (1 + (t - 1) rate_decay) g / (sqrt(initial_sum + s) + epsilon)
struct AdagradUpdate {
  static constexpr int kSlots = 1;
  using Attributes = AdagradAttributes;

  template <class T>
  struct Constants {
    T rate, initial_sum, epsilon, weight_decay;
  };
  template <class T>
  EBB_HOST_DEVICE static Constants<T> constants(const Attributes& a, double step, double rate) {
    return {static_cast<T>(rate / (1 + (step - 1) * a.rate_decay)), static_cast<T>(a.initial_sum),
            static_cast<T>(a.epsilon), static_cast<T>(a.weight_decay)};
  }
  template <class T>
  EBB_HOST_DEVICE static void update(const Constants<T>& c, T (&x)[1 + kSlots], T g) {
    g += c.weight_decay * x[0];
    x[1] += g * g;
    x[0] -= c.rate * g / (std::sqrt(c.initial_sum + x[1]) + c.epsilon);
  }
};

}  // namespace ebb::optim
