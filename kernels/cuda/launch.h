// Launches a kernel into a stream, and a thread's position for loops that stride over the grid.
#pragma once
#include <algorithm>
#include <cstdint>

#include "ebb/core/kernels/status.h"
#include "ebb/kernels/cuda/stream.h"

namespace ebb::cuda {

inline constexpr int kWarp = 32;
inline constexpr int kThreads = 256;  // per block, unless a kernel has a reason for another number

__device__ inline std::int64_t grid_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t grid_threads() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) noexcept {
  return (a + b - 1) / b;
}

// Launches kernel(arguments...) into the stream. A refused launch has written nothing.
template <class... Parameters, class... Arguments>
Status launch(cudaStream_t stream, void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
              Arguments&&... arguments) noexcept {
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = stream;
  Status status = answer(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...),
                         "the kernel could not be launched");
  status.refused = !status.ok();
  return status;
}

// Blocks for a loop that strides over the grid: enough to fill any device several times, and few
// enough that each thread has more than one element of a large array.
inline unsigned blocks_for(std::int64_t items, int threads = kThreads) noexcept {
  constexpr std::int64_t kMostBlocks = 1 << 14;
  return static_cast<unsigned>(std::clamp<std::int64_t>(divide_up(items, threads), 1, kMostBlocks));
}

}  // namespace ebb::cuda
