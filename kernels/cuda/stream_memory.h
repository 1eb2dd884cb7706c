// Clears and copies memory in a stream.
#pragma once
#include "ebb/kernels/cuda/stream.h"

namespace ebb::cuda {

inline Status clear(cudaStream_t stream, void* data, std::size_t bytes) noexcept {
  if (bytes == 0) return {};
  return answer(cudaMemsetAsync(data, 0, bytes, stream), "memory could not be cleared");
}
// A null `from` counts as zeros; with a null `to`, or both the same, nothing is done.
inline Status copy(cudaStream_t stream, void* to, const void* from, std::size_t bytes) noexcept {
  if (to == nullptr || to == from || bytes == 0) return {};
  if (from == nullptr) return clear(stream, to, bytes);
  return answer(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream),
                "memory could not be copied");
}

}  // namespace ebb::cuda
