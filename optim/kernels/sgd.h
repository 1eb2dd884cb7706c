#pragma once
#include "ebb/optim/kernels/update.h"

namespace ebb::optim {

struct SgdAttributes {
  double momentum = 0;      // used only with a velocity
  double weight_decay = 0;  // added to the gradient
  double clip_value = 0;
  std::int64_t nesterov = 0;
};

// PyTorch's SGD; a velocity starts at 0:
//   g += wd p; v = momentum v + g; p -= rate (nesterov ? g + momentum v : v)
template <bool kHasVelocity>
struct SgdUpdate {
  static constexpr int kSlots = kHasVelocity ? 1 : 0;
  using Attributes = SgdAttributes;

  template <class T>
  struct Constants {
    T momentum, decay, rate;
    bool nesterov;
  };
  template <class T>
  EBB_HOST_DEVICE static Constants<T> constants(const Attributes& a, double, double rate) {
    return {static_cast<T>(a.momentum), static_cast<T>(a.weight_decay), static_cast<T>(rate),
            a.nesterov != 0};
  }
  template <class T>
  EBB_HOST_DEVICE static void update(const Constants<T>& c, T (&x)[1 + kSlots], T g) {
    g = g + c.decay * x[0];
    if constexpr (kHasVelocity) {
      x[1] = c.momentum * x[1] + g;
      x[0] = x[0] - c.rate * (c.nesterov ? g + c.momentum * x[1] : x[1]);
    } else {
      x[0] = x[0] - c.rate * g;
    }
  }
};

}  // namespace ebb::optim
