#pragma once
#include "ebb/core/kernels/functors/host_device.h"

namespace ebb::functors {

// NaN is not equal to itself.
struct Maximum : Exact {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& a, const X& b) const {
    return a >= b ? a : a != a ? a : b;
  }
};
struct Minimum : Exact {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& a, const X& b) const {
    return a <= b ? a : a != a ? a : b;
  }
};
struct ShareOfMaximum : Exact {
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& a, const X& b) const {
    return a < b ? X{} : a == b ? parameter<X>(0.5) : parameter<X>(1);
  }
};

struct Bounds {
  double low, high;
};
struct Clamp : Bounds {
  static constexpr bool exact = true;
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& x) const {
    const X least = parameter<X>(low), most = parameter<X>(high);
    const X raised = x < least ? least : x;
    return raised > most ? most : raised;
  }
};
struct ClampGradient : Bounds {
  static constexpr bool exact = true;
  template <class X>
  EBB_HOST_DEVICE auto operator()(const X& dy, const X& x) const {
    return x >= parameter<X>(low) && x <= parameter<X>(high) ? dy : X{};
  }
};

}  // namespace ebb::functors
