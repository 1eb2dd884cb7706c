#pragma once
#include <cmath>

#include "ebb/core/kernels/functors/host_device.h"

namespace ebb::functors {

struct Exp {
  EBB_HOST_DEVICE auto operator()(const auto& x) const {
    using std::exp;
    return exp(x);
  }
};
struct Log {
  EBB_HOST_DEVICE auto operator()(const auto& x) const {
    using std::log;
    return log(x);
  }
};
struct Tanh {
  EBB_HOST_DEVICE auto operator()(const auto& x) const {
    using std::tanh;
    return tanh(x);
  }
};

}  // namespace ebb::functors
