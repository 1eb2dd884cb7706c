#pragma once
#include <cmath>

#include "ebb/core/kernels/functors/host_device.h"
#include "ebb/core/kernels/functors/normal.h"

namespace ebb::functors {

// In this form it is as accurate as exp at both ends.
struct Sigmoid {
  EBB_HOST_DEVICE auto operator()(const auto& x) const {
    using std::exp;
    return 1 / (1 + exp(-x));
  }
};
// Computed from the smaller exponential, which neither overflows nor loses digits beside the 1.
struct Softplus {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    using std::abs, std::exp, std::fmax, std::log1p;
    return fmax(x, X{}) + log1p(exp(-abs(x)));
  }
};
struct Relu : Exact {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    return x < X{} ? X{} : x;
  }
};
struct ReluGradient : Exact {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& dy, const X& y) const {
    return y > X{} ? dy : X{};
  }
};

struct Slope {
  double slope;
};
struct LeakyRelu : Slope {
  static constexpr bool exact = true;
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    return x > X{} ? x : parameter<X>(slope) * x;
  }
};
struct LeakyReluGradient : Slope {
  static constexpr bool exact = true;
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& dy, const X& y) const {
    return y > X{} ? dy : parameter<X>(slope) * dy;
  }
};

// elu below 0 is y = alpha (exp(x) - 1), with derivative y + alpha.
struct Alpha {
  double alpha;
};
struct Elu : Alpha {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    using std::expm1;
    return choose(X{} < x, x, parameter<X>(alpha) * expm1(x));
  }
};
struct EluGradient : Alpha {
  static constexpr bool exact = true;
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& dy, const X& y) const {
    return y > X{} ? dy : dy * (y + parameter<X>(alpha));
  }
};

// 1 / (1 + exp(-z)), multiplied by a factor: alone it may underflow. z is cut where that makes no
// difference.
template <class X>
struct Logistic {
  X z;
  ScaledExp<X> e;  // of -z

  EBB_HOST_DEVICE explicit Logistic(const X& any) {
    const X bound = parameter<X>(kMostScaled<X>), cut = choose(bound < any, bound, any);
    z = choose(cut < -bound, -bound, cut);
    e = scaled_exp(-z);
  }
  EBB_HOST_DEVICE X times(const X& factor) const { return factor * e.scale / (e.scale + e.value); }
  // 1 / (1 + exp(z)).
  EBB_HOST_DEVICE X rest() const { return e.value / (e.scale + e.value); }
};
struct Silu {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    const Logistic<X> s(x);
    return s.times(choose(s.z < x, x, s.z));
  }
};
struct SiluGradient {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& dy, const X& x) const {
    const Logistic<X> s(x);
    return s.times(dy) * (1 + s.z * s.rest());
  }
};

struct Gelu {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    const Normal<X> normal(x);
    return normal.below(choose(X{} < x, x, normal.x));
  }
};
struct GeluGradient {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& dy, const X& x) const {
    return dy * Normal<X>(x).slope();
  }
};

// x / (1 + exp(-z)) with z = 2 sqrt(2 / pi) (x + 0.044715 x^3). Its limits are reached before |x| =
// 30, where x is cut.
template <class X>
struct TanhBell {
  static constexpr double kFirst = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi,
                          kThird = 0.044715 * kFirst;
  X x, square;

  EBB_HOST_DEVICE explicit TanhBell(const X& any) {
    const X bound = parameter<X>(30), cut = choose(bound < any, bound, any);
    x = choose(cut < -bound, -bound, cut);
    square = x * x;
  }
  EBB_HOST_DEVICE Logistic<X> logistic() const {
    return Logistic<X>(x * (parameter<X>(kFirst) + parameter<X>(kThird) * square));
  }
  // dz / dx.
  EBB_HOST_DEVICE X slope() const {
    return parameter<X>(kFirst) + parameter<X>(3 * kThird) * square;
  }
};
struct GeluTanh {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    const TanhBell<X> bell(x);
    return bell.logistic().times(choose(X{} < x, x, bell.x));
  }
};
struct GeluTanhGradient {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& dy, const X& x) const {
    const TanhBell<X> bell(x);
    const Logistic<X> s = bell.logistic();
    return s.times(dy) * (1 + bell.x * bell.slope() * s.rest());
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
struct Identity : Exact {
  template <class X>
  EBB_HOST_DEVICE const X& operator()(const X& x) const {
    return x;
  }
};

}  // namespace ebb::functors
