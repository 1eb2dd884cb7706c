#pragma once
#include "ebb/core/kernels/linear.h"
#include "ebb/kernels/cuda/stream.h"

namespace ebb::cuda {

// y[i, j] = activation(y[i, j] + bias[j]) over rows without gaps; a null bias counts as zeros.
template <class T>
Status add_bias_and_activate(cudaStream_t stream, Activation activation, T* y, const T* bias,
                             std::int64_t rows, std::int64_t columns) noexcept;

}  // namespace ebb::cuda
