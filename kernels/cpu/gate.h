#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb::cpu {

// What the two inputs say that a gated update has at the end, ready and count: whether to go on,
// and by what the gradient is divided.
struct GateState {
  bool open = true;
  double divisor = 1;

  GateState(const KernelContext& context, bool gated) noexcept {
    if (!gated) return;
    const std::size_t n = context.inputs.size();
    open = *context.inputs[n - 2].as<const bool>();
    divisor = static_cast<double>(*context.inputs[n - 1].as<const std::int64_t>());
  }
};

}  // namespace ebb::cpu
