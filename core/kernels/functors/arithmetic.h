#pragma once
#include <cmath>

#include "ebb/core/kernels/functors/host_device.h"

namespace ebb::functors {

struct Negate : Exact {
  EBB_HOST_DEVICE auto operator()(const auto& x) const { return -x; }
};
struct Square : Exact {
  EBB_HOST_DEVICE auto operator()(const auto& x) const { return x * x; }
};
EBB_FUNCTOR(Sqrt : Exact, sqrt)

struct Add : Exact {
  EBB_HOST_DEVICE auto operator()(const auto& x, const auto& y) const { return x + y; }
};
struct Subtract : Exact {
  EBB_HOST_DEVICE auto operator()(const auto& x, const auto& y) const { return x - y; }
};
struct Multiply : Exact {
  EBB_HOST_DEVICE auto operator()(const auto& x, const auto& y) const { return x * y; }
};
struct Divide : Exact {
  EBB_HOST_DEVICE auto operator()(const auto& x, const auto& y) const { return x / y; }
};

}  // namespace ebb::functors
