#pragma once
#include "ebb/core/kernels/functors/host_device.h"
#include "ebb/core/kernels/functors/quarter_turns.h"

namespace ebb::functors {

// Scalars by functions of our own: CUDA's need local memory.
struct Sin {
  EBB_HOST_DEVICE auto operator()(const auto& x) const { return sin(x); }
  EBB_HOST_DEVICE float operator()(float x) const { return sine(x); }
  EBB_HOST_DEVICE double operator()(double x) const { return sine(x); }
};
struct Cos {
  EBB_HOST_DEVICE auto operator()(const auto& x) const { return cos(x); }
  EBB_HOST_DEVICE float operator()(float x) const { return cosine(x); }
  EBB_HOST_DEVICE double operator()(double x) const { return cosine(x); }
};

}  // namespace ebb::functors
