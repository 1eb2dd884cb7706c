// Memory that is set and copied in a stream, and how a row of such steps is written.
#pragma once
#include "ebb/kernels/cuda/launch.h"

// Answers with the first failure of a row of steps; the rest is then left out.
#define EBB_TRY(expression)                               \
  if (const Status status = (expression); !status.ok()) { \
    return status;                                        \
  }

namespace ebb::cuda {

inline Status clear(cudaStream_t stream, void* data, std::size_t bytes) noexcept {
  if (bytes == 0) return {};
  return answer(cudaMemsetAsync(data, 0, bytes, stream), "memory could not be cleared");
}
// A null `from` counts as zeros, a null `to` is left alone.
inline Status copy(cudaStream_t stream, void* to, const void* from, std::size_t bytes) noexcept {
  if (to == nullptr || bytes == 0) return {};
  if (from == nullptr) return clear(stream, to, bytes);
  return answer(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
                "memory could not be copied");
}

}  // namespace ebb::cuda
