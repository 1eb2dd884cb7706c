#pragma once
#include <cmath>

#include "ebb/core/kernels/functors/host_device.h"

namespace ebb::functors {

struct Expm1 {
  EBB_HOST_DEVICE auto operator()(const auto& x) const {
    using std::expm1;
    return expm1(x);
  }
};
struct Log1p {
  EBB_HOST_DEVICE auto operator()(const auto& x) const {
    using std::log1p;
    return log1p(x);
  }
};
struct Log2 {
  EBB_HOST_DEVICE auto operator()(const auto& x) const {
    using std::log2;
    return log2(x);
  }
};
struct Log10 {
  EBB_HOST_DEVICE auto operator()(const auto& x) const {
    using std::log10;
    return log10(x);
  }
};
struct Exp2 {
  EBB_HOST_DEVICE auto operator()(const auto& x) const {
    using std::exp2;
    return exp2(x);
  }
};
struct Rsqrt {
  static constexpr bool exact = true;
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
