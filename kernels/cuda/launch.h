// Launches a kernel into a stream.
#pragma once
#include <algorithm>
#include <cstdint>

#include "ebb/core/kernels/status.h"
#include "ebb/kernels/cuda/stream.h"

namespace ebb::cuda {

inline constexpr int kWarp = 32;
inline constexpr int kThreads = 256;  // per block, unless a kernel has a reason for another number

inline Status answer(cudaError_t error, const char* problem) noexcept {
  if (error == cudaSuccess) [[likely]]
    return {};
  static_cast<void>(cudaGetLastError());  // clear it, or the next call would report it too
  return Status::fail(problem, static_cast<int>(error));
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
  return static_cast<unsigned>(
      std::clamp<std::int64_t>((items + threads - 1) / threads, 1, kMostBlocks));
}

}  // namespace ebb::cuda
