#pragma once
#include <cmath>

#include "ebb/core/kernels/functors/host_device.h"

namespace ebb::functors {

struct Abs {
  static constexpr bool exact = true;
  EBB_HOST_DEVICE auto operator()(const auto& x) const {
    using std::abs;
    return abs(x);
  }
};
struct Sign {
  static constexpr bool exact = true;
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    return x > X{} ? X{} + 1 : x < X{} ? X{} - 1 : x + X{};  // -0 + 0 is 0, and NaN stays
  }
};
struct Floor {
  static constexpr bool exact = true;
  EBB_HOST_DEVICE auto operator()(const auto& x) const {
    using std::floor;
    return floor(x);
  }
};
struct Ceil {
  static constexpr bool exact = true;
  EBB_HOST_DEVICE auto operator()(const auto& x) const {
    using std::ceil;
    return ceil(x);
  }
};
struct Round {
  static constexpr bool exact = true;
  EBB_HOST_DEVICE auto operator()(const auto& x) const {
    using std::rint;
    return rint(x);
  }
};
struct Trunc {
  static constexpr bool exact = true;
  EBB_HOST_DEVICE auto operator()(const auto& x) const {
    using std::trunc;
    return trunc(x);
  }
};
// fmod is exact, and has the sign of a.
struct Remainder {
  static constexpr bool exact = true;
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& a, const X& b) const {
    using std::copysign, std::fmod;
    const X rest = fmod(a, b);
    if (rest == X{}) return copysign(rest, b);
    return (rest < X{}) != (b < X{}) ? rest + b : rest;
  }
};

// The quotient of what is left without the remainder, which is next to an integer: as NumPy has it.
struct FloorDivide {
  static constexpr bool exact = true;
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& a, const X& b) const {
    using std::copysign, std::floor, std::fmod;
    const X rest = fmod(a, b);
    if (b == X{}) return a / b;
    X quotient = (a - rest) / b;
    if (rest != X{} && (rest < X{}) != (b < X{})) quotient = quotient - 1;
    if (quotient == X{}) return copysign(X{}, a / b);
    const X below = floor(quotient);
    return quotient - below > parameter<X>(0.5) ? below + 1 : below;
  }
};

}  // namespace ebb::functors
