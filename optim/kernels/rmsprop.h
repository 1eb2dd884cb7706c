#pragma once
#include <cmath>

#include "ebb/optim/kernels/update.h"

namespace ebb::optim {

struct RmspropAttributes {
  double decay = 0.99, epsilon = 1e-8, momentum = 0, weight_decay = 0;
  double clip_value = 0;
};

// Slots that a rule keeps beside the mean of squares.
enum RmspropForm : int { kCentered = 1, kMomentum = 2 };

// PyTorch's RMSprop. Slots v, (a if kCentered), (b if kMomentum):
//   g += wd p; v = decay v + (1 - decay) g^2; a = decay a + (1 - decay) g
//   u = g / (sqrt(v - a^2) + epsilon); b = momentum b + u; p -= rate b
// Without kCentered a is 0, without kMomentum b is u. The variance v - a^2 is kept at or above 0.
template <int kForm>
struct RmspropUpdate {
  static constexpr bool kHasMean = (kForm & kCentered) != 0, kHasBuffer = (kForm & kMomentum) != 0;
  static constexpr int kSlots = 1 + (kHasMean ? 1 : 0) + (kHasBuffer ? 1 : 0);
  using Attributes = RmspropAttributes;

  template <class T>
  struct Constants {
    T decay, one_minus_decay, epsilon, momentum, weight_decay, rate;
  };
  template <class T>
  EBB_HOST_DEVICE static Constants<T> constants(const Attributes& a, double, double rate) {
    return {static_cast<T>(a.decay),    static_cast<T>(1 - a.decay),    static_cast<T>(a.epsilon),
            static_cast<T>(a.momentum), static_cast<T>(a.weight_decay), static_cast<T>(rate)};
  }
  template <class T>
  EBB_HOST_DEVICE static void update(const Constants<T>& c, T (&x)[1 + kSlots], T g) {
    g += c.weight_decay * x[0];
    x[1] = c.decay * x[1] + c.one_minus_decay * (g * g);
    T variance = x[1];
    if constexpr (kHasMean) {
      x[2] = c.decay * x[2] + c.one_minus_decay * g;
      variance -= x[2] * x[2];
      variance = variance < 0 ? T{} : variance;
    }
    T u = g / (std::sqrt(variance) + c.epsilon);
    if constexpr (kHasBuffer) u = x[kSlots] = c.momentum * x[kSlots] + u;
    x[0] -= c.rate * u;
  }
};

}  // namespace ebb::optim
