#pragma once
#include <cmath>

#include "ebb/core/kernels/functors/host_device.h"
#include "ebb/core/kernels/functors/quarter_turns.h"

namespace ebb::functors {

// Numbers by functions of our own, since CUDA's need local memory; blocks of the CPU by the C
// library (kernels/cpu/trigonometry.cpp).
struct Sin {
  EBB_HOST_DEVICE auto operator()(const auto& x) const { return sine(x); }
};
struct Cos {
  EBB_HOST_DEVICE auto operator()(const auto& x) const { return cosine(x); }
};
struct Tan {
  EBB_HOST_DEVICE auto operator()(const auto& x) const { return tangent(x); }
};
EBB_FUNCTOR(Asin, asin)
EBB_FUNCTOR(Acos, acos)
EBB_FUNCTOR(Atan, atan)
EBB_FUNCTOR(Sinh, sinh)
EBB_FUNCTOR(Cosh, cosh)
EBB_FUNCTOR(Asinh, asinh)
EBB_FUNCTOR(Acosh, acosh)
EBB_FUNCTOR(Atanh, atanh)
struct Atan2 {
  EBB_HOST_DEVICE auto operator()(const auto& y, const auto& x) const {
    using std::atan2;
    return atan2(y, x);
  }
};

}  // namespace ebb::functors
