#pragma once
#include "ebb/optim/kernels/update.h"

namespace ebb::optim {

struct LionAttributes {
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  double clip_value = 0;
};

// Lion of Chen et al. Slot m:
//   p -= rate (sign(beta1 m + (1 - beta1) g) + wd p); m = beta2 m + (1 - beta2) g
// with the old m and p on the right. sign(0) is 0, sign(NaN) NaN.
struct LionUpdate {
  static constexpr int kSlots = 1;
  using Attributes = LionAttributes;

  template <class T>
  struct Constants {
    T beta1, one_minus_beta1, beta2, one_minus_beta2, rate, keep;
  };
  template <class T>
  EBB_HOST_DEVICE static Constants<T> constants(const Attributes& a, double, double rate) {
    return {static_cast<T>(a.beta1), static_cast<T>(1 - a.beta1),
            static_cast<T>(a.beta2), static_cast<T>(1 - a.beta2),
            static_cast<T>(rate),    static_cast<T>(1 - rate * a.weight_decay)};
  }
  template <class T>
  EBB_HOST_DEVICE static void update(const Constants<T>& c, T (&x)[1 + kSlots], T g) {
    const T u = c.beta1 * x[1] + c.one_minus_beta1 * g;
    const T step = u > 0 ? c.rate : u < 0 ? -c.rate : u;  // u is 0 or NaN in the last case
    x[0] = c.keep * x[0] - step;
    x[1] = c.beta2 * x[1] + c.one_minus_beta2 * g;
  }
};

}  // namespace ebb::optim
