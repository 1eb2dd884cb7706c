#pragma once
#include <cmath>

#include "ebb/core/kernels/functors/host_device.h"

namespace ebb::functors {

struct Negate {
  static constexpr bool exact = true;
  EBB_HOST_DEVICE auto operator()(const auto& x) const { return -x; }
};
struct Square {
  static constexpr bool exact = true;
  EBB_HOST_DEVICE auto operator()(const auto& x) const { return x * x; }
};
EBB_EXACT_FUNCTOR(Sqrt, sqrt)

struct Add {
  static constexpr bool exact = true;
  EBB_HOST_DEVICE auto operator()(const auto& x, const auto& y) const { return x + y; }
};
struct Subtract {
  static constexpr bool exact = true;
  EBB_HOST_DEVICE auto operator()(const auto& x, const auto& y) const { return x - y; }
};
struct Multiply {
  static constexpr bool exact = true;
  EBB_HOST_DEVICE auto operator()(const auto& x, const auto& y) const { return x * y; }
};
struct Divide {
  static constexpr bool exact = true;
  EBB_HOST_DEVICE auto operator()(const auto& x, const auto& y) const { return x / y; }
};

}  // namespace ebb::functors
