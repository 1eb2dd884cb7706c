// The normal distribution and the error function, from exp alone.
#pragma once
#include <cmath>
#include <numbers>

#include "ebb/core/kernels/functors/host_device.h"

namespace ebb::functors {

// exp(t^2 / 2) times the normal probability of less than -t, for t >= 0. In double a polynomial in
// (t
// - 4) / (t + 4), over 1 + t, from Chebyshev's interpolation of (1 + t) exp(t^2 / 2) erfc(t /
// sqrt(2)) / 2, exact to 6e-17. In float a quotient of polynomials fitted to the same without 1 +
// t, exact to 6e-9 for t up to 14.
template <class X>
EBB_HOST_DEVICE X tail_ratio(const X& t) {
  static constexpr double kAbove[] = {0.5000000027267152, 0.4372471147386054, 0.18245883353097925,
                                      0.040371489420575765, 0.004077434843358871};
  static constexpr double kBelow[] = {1.0,
                                      1.6723791832587707,
                                      1.1992786864629987,
                                      0.4674211371333453,
                                      0.10120312739415308,
                                      0.010220484702342172};
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
  const auto sum = [](const X& q, const auto& terms, int last) {
    X y = parameter<X>(terms[last]);
    for (int i = last - 1; i >= 0; --i) y = y * q + parameter<X>(terms[i]);
    return y;
  };
  if constexpr (kIsSingle<X>)
    return sum(t, kAbove, 4) / sum(t, kBelow, 5);
  else
    return sum((t - 4) / (t + 4), kDouble, 24) / (1 + t);
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
    const X large = half * high * high, small = half * (size - high) * (size + high);
    const X sum = large + small;
    const X rounded = exp(sum);
    bell = rounded + rounded * ((large - sum) + small);
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
