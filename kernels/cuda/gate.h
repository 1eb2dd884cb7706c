#pragma once
#include <cuda_runtime.h>

#include "ebb/core/kernels/kernel.h"

namespace ebb::cuda {

// The two inputs that a gated update has at the end, ready and count, read on the device: whether
// to go on, and by what the gradient is divided.
struct Gate {
  const bool* ready = nullptr;  // neither: not gated
  const std::int64_t* count = nullptr;

  Gate(const KernelContext& context, bool gated) noexcept {
    if (!gated) return;
    const std::size_t n = context.inputs.size();
    ready = context.inputs[n - 2].as<const bool>();
    count = context.inputs[n - 1].as<const std::int64_t>();
  }
  __device__ bool is_open() const { return ready == nullptr || *ready; }
  __device__ double divisor() const { return count == nullptr ? 1 : static_cast<double>(*count); }
};

}  // namespace ebb::cuda
