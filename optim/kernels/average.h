#pragma once
#include <cmath>

#include "ebb/optim/kernels/update.h"

namespace ebb::optim {

struct AverageAttributes {
  std::int64_t bias_corrected = 1;
  double clip_value = 0;  // every update rule has one
};

// Takes a value x into its average a. As an update, the average is the parameter, the value the
// gradient and the decay d the rate. The t-th time:
//   a += w (x - a), w = (1 - d) / (1 - d^t) with bias correction, else 1 - d; a = x the first time
struct AverageUpdate {
  static constexpr int kSlots = 0;
  using Attributes = AverageAttributes;

  template <class T>
  struct Constants {
    T weight;
  };
  template <class T>
  EBB_HOST_DEVICE static Constants<T> constants(const Attributes& a, double step, double decay) {
    const double corrected = (1 - decay) / (1 - std::pow(decay, step));
    return {static_cast<T>(step <= 1 ? 1 : a.bias_corrected != 0 ? corrected : 1 - decay)};
  }
  template <class T>
  EBB_HOST_DEVICE static void update(const Constants<T>& c, T (&x)[1 + kSlots], T value) {
    x[0] = c.weight == 1 ? value : x[0] + c.weight * (value - x[0]);
  }
};

}  // namespace ebb::optim
