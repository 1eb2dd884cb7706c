// Converts between ebb's layouts and cuDNN's.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "ebb/core/kernels/status.h"

namespace ebb::cuda {

// Offsets of a layer's weights in cuDNN's space, in elements: W and R as [4, hidden, width], the
// transposes of ebb's, gates in the order i, f, g, o, and two biases [4, hidden].
struct CudnnWeights {
  std::int64_t w = 0, r = 0, b = 0, second_b = 0;
};

// Packs W [in, 4 hidden], R [hidden, 4 hidden], b [4 hidden]; the second biases become zeros.
template <class T>
Status pack_weights(cudaStream_t stream, const CudnnWeights& at, std::int64_t in,
                    std::int64_t hidden, const T* w, const T* r, const T* b, T* packed) noexcept;
// Unpacks the gradients; skips the null ones.
template <class T>
Status unpack_weights(cudaStream_t stream, const CudnnWeights& at, std::int64_t in,
                      std::int64_t hidden, const T* packed, T* dw, T* dr, T* db) noexcept;

// to[inner, outer, width] = from[outer, inner, width].
template <class T>
Status swap_axes(cudaStream_t stream, const T* from, T* to, std::int64_t outer, std::int64_t inner,
                 std::int64_t width) noexcept;

}  // namespace ebb::cuda
