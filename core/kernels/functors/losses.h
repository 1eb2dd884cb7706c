#pragma once
#include <cmath>

#include "ebb/core/kernels/functors/host_device.h"

namespace ebb::functors {

struct AbsoluteDifference : Exact {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& a, const X& b) const {
    const X d = a - b;
    return d < X{} ? -d : d;
  }
};

// d^2 / 2 of a difference within delta, delta (|d| - delta / 2) beyond.
struct Delta {
  double delta;
};
struct Huber : Delta {
  static constexpr bool exact = true;
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& a, const X& b) const {
    const X d = a - b, most = parameter<X>(delta);
    const X raised = d < -most ? -most : d;
    const X cut = raised > most ? most : raised;
    return cut * (d - parameter<X>(0.5) * cut);
  }
};

// -z log(sigmoid(x)) - (1 - z) log(1 - sigmoid(x)), rearranged so that large terms cancel first.
struct BinaryCrossEntropy {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x, const X& z) const {
    using std::abs, std::exp, std::fmax, std::log1p;
    return (fmax(x, X{}) - x * z) + log1p(exp(-abs(x)));
  }
};

// p (log p - log q) of logarithms; 0 where p is 0.
struct Divergence {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& log_p, const X& log_q) const {
    using std::exp;
    return choose(log_p < parameter<X>(-3e38), X{}, exp(log_p) * (log_p - log_q));
  }
};

}  // namespace ebb::functors
