// The normal distribution and the error function, from exp alone.
#pragma once
#include <cmath>
#include <numbers>

#include "ebb/core/kernels/functors/host_device.h"

namespace ebb::functors {

// exp(t^2 / 2) times the normal probability of less than -t, for t >= 0. A polynomial in (t - 4) /
// (t + 4), over 1 + t, from Chebyshev's interpolation of (1 + t) exp(t^2 / 2) erfc(t / sqrt(2)) /
// 2, exact to 8e-9 and 6e-17.
template <class X>
EBB_HOST_DEVICE X tail_ratio(const X& t) {
  static constexpr double kSingle[] = {
      0.4720532026941583,     -0.09670347042745923,    0.013999913667926737,
      0.028600168143397546,   -0.032201162891248414,   0.017937695942263972,
      -0.004987714249865996,  -0.00029126749523318687, 0.0006649886920591677,
      -8.455401787143764e-05, -5.8091235258713935e-05, 1.256854669748779e-05};
  static constexpr double kDouble[] = {
      0.47205320650984467,     -0.09670347732652607,    0.013999634724424333,
      0.02860036405357749,     -0.03219783742802203,    0.01793609747886859,
      -0.005002378592511494,   -0.00028562308680939413, 0.0006948971219073166,
      -9.443033944152223e-05,  -8.785330394797745e-05,  2.1250446856208376e-05,
      1.3627395285352675e-05,  -3.433372216853275e-06,  -2.6144101706596152e-06,
      4.0671730125154447e-07,  5.548340462207789e-07,   -1.237153366992197e-09,
      -1.1446850712758079e-07, -1.7932121916642413e-08, 2.0257667136861587e-08,
      5.474708632048689e-09,   -2.6180348731255444e-09, -6.763267210562454e-10,
      1.7873545221852657e-10};
  const auto sum = [&](const auto& terms, int last) {
    const X q = (t - 4) / (t + 4);
    X y = parameter<X>(terms[last]);
    for (int i = last - 1; i >= 0; --i) y = y * q + parameter<X>(terms[i]);
    return y;
  };
  return (kIsSingle<X> ? sum(kSingle, 11) : sum(kDouble, 24)) / (1 + t);
}

// The parts of the normal distribution at x, which is cut at |x| = 40.
template <class X>
struct Normal {
  X x;
  X bell;   // exp(-x^2 / 2), from x in two parts: the first has an exact square
  X ratio;  // times the bell it is the probability beyond |x| on one side

  EBB_HOST_DEVICE explicit Normal(const X& any) {
    using std::abs, std::exp;
    const X bound = parameter<X>(40), shift = parameter<X>(kIsSingle<X> ? 0x1.8p17 : 0x1.8p32);
    const X cut = choose(bound < any, bound, any), half = parameter<X>(-0.5);
    x = choose(cut < -bound, -bound, cut);
    const X size = abs(x), high = (size + shift) - shift;
    const X most = half * high * high, rest = half * (size - high) * (size + high);
    // What the sum loses is as much of its exponential, which times that alone may be denormal.
    const X sum = most + rest;
    bell = exp(sum) * (1 + ((most - sum) + rest));
    ratio = tail_ratio(size);
  }
  // The probability of less than x, times a factor: alone it might underflow.
  EBB_HOST_DEVICE X below(const X& factor) const {
    return choose(x < X{}, factor * ratio * bell, factor * (1 - ratio * bell));
  }
  // The derivative of x times the probability of less than x.
  EBB_HOST_DEVICE X slope() const {
    const X rise = x * parameter<X>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    return choose(x < X{}, (ratio + rise) * bell, 1 + (rise - ratio) * bell);
  }
};

struct Erf {
  template <class X>
  EBB_HOST_DEVICE X operator()(const X& x) const {
    using std::abs, std::exp;
    const X size = abs(x), bound = parameter<X>(10), square = x * x;
    // Taylor's series, from the last term on.
    X y = parameter<X>(1);
    for (int n = kIsSingle<X> ? 10 : 18; n > 0; --n)
      y = 1 - y * square * parameter<X>((2 * n - 1.0) / (n * (2 * n + 1)));
    const X t = choose(bound < size, bound, size);
    const X far = 1 - 2 * tail_ratio(t * parameter<X>(std::numbers::sqrt2)) * exp(-(t * t));
    return choose(size < parameter<X>(1), x * parameter<X>(2 * std::numbers::inv_sqrtpi) * y,
                  choose(x < X{}, -far, far));
  }
};

}  // namespace ebb::functors
