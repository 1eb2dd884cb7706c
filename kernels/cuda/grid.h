// A thread's position, for loops that stride over the grid.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

namespace ebb::cuda {

__device__ inline std::int64_t grid_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t grid_threads() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) noexcept {
  return (a + b - 1) / b;
}

}  // namespace ebb::cuda
