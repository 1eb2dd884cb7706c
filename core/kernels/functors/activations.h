#pragma once
#include <cmath>

#include "ebb/core/kernels/functors/host_device.h"

namespace ebb::functors {

// Written so, it is as accurate as exp at both ends.
struct Sigmoid {
  EBB_HOST_DEVICE auto operator()(const auto& x) const {
    using std::exp;
    return 1 / (1 + exp(-x));
  }
};
// Of the smaller exponential, which neither overflows nor drowns the 1.
struct Softplus {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    using std::abs, std::exp, std::fmax, std::log1p;
    return fmax(x, X{}) + log1p(exp(-abs(x)));
  }
};
struct Relu {
  static constexpr bool exact = true;
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    return x < X{} ? X{} : x;
  }
};
struct ReluGradient {
  static constexpr bool exact = true;
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& dy, const X& y) const {
    return y > X{} ? dy : X{};
  }
};

// Gradients from the result y.
struct TanhGradient {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& dy, const X& y) const {
    return dy * (1 - y * y);
  }
};
struct SigmoidGradient {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& dy, const X& y) const {
    return dy * (y * (1 - y));
  }
};
struct Identity {
  static constexpr bool exact = true;
  template <class X>
  EBB_HOST_DEVICE const X& operator()(const X& x) const {
    return x;
  }
};

}  // namespace ebb::functors
