#pragma once
#include <cmath>

#include "ebb/core/kernels/functors/host_device.h"

namespace ebb::functors {

EBB_FUNCTOR(Expm1, expm1)
EBB_FUNCTOR(Log1p, log1p)
EBB_FUNCTOR(Log2, log2)
EBB_FUNCTOR(Log10, log10)
EBB_FUNCTOR(Exp2, exp2)
struct Rsqrt : Exact {
  EBB_HOST_DEVICE auto operator()(const auto& x) const {
    using std::sqrt;
    return 1 / sqrt(x);
  }
};
struct Power {
  EBB_HOST_DEVICE auto operator()(const auto& a, const auto& b) const {
    using std::pow;
    return pow(a, b);
  }
};

}  // namespace ebb::functors
