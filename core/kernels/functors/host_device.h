// Pointwise arithmetic, written once. A functor takes scalars, or in kernels/cpu Blocks of scalars,
// whose functions are found by argument (hence `using std::exp;`). X{} is zero.
//
// A functor that consists of IEEE's exact operations is Exact (`exact = true`): scalars then give
// the same bits as blocks, so that compilers may vectorise its loops. Other functors work on whole
// blocks, and choose by element with choose(x < y, a, b).
//
// A functor with parameters has them as members, doubles that parameter<X>() converts for
// computing. It is its operator's attributes.
#pragma once
#include <cmath>

#include "ebb/core/base/host_device.h"

// A functor that is one function of <cmath>, or of Blocks; behind its name, its base.
#define EBB_FUNCTOR(Functor, function)                     \
  struct Functor {                                         \
    EBB_HOST_DEVICE auto operator()(const auto& x) const { \
      using std::function;                                 \
      return function(x);                                  \
    }                                                      \
  };

namespace ebb::functors {

struct Exact {
  static constexpr bool exact = true;
};

template <class X>
struct ElementOf {
  using type = X;
};
template <class X>
requires requires { typename X::Element; }
struct ElementOf<X> {
  using type = typename X::Element;
};
template <class X>
inline constexpr bool kIsSingle = sizeof(typename ElementOf<X>::type) == sizeof(float);

template <class X>
EBB_HOST_DEVICE X parameter(double value) {
  return X(static_cast<typename ElementOf<X>::type>(value));
}

template <class X>
EBB_HOST_DEVICE X choose(bool first, const X& a, const X& b) {
  return first ? a : b;
}

// exp(x) times `scale`, which is 1, or 2^-64 where exp(x) might overflow. For x up to kMostScaled;
// below the smallest normal number it stays near that.
template <class X>
struct ScaledExp {
  X value, scale;
};
template <class X>
inline constexpr double kMostScaled = kIsSingle<X> ? 133 : 754;
template <class X>
EBB_HOST_DEVICE ScaledExp<X> scaled_exp(const X& x) {
  using std::exp;
  const X half = exp(parameter<X>(0.5) * x), scale = x > X(80) ? parameter<X>(0x1p-64) : X(1);
  return {half * scale * half, scale};
}

}  // namespace ebb::functors
