// The epilogues of products that no library adds.
#pragma once
#include "ebb/core/kernels/linear.h"
#include "ebb/kernels/cuda/plans/reduce_plan.h"
#include "ebb/kernels/cuda/stream.h"

namespace ebb::cuda {

// y[i, j] = activation(y[i, j] + bias[j]) over rows without gaps; a null bias counts as zeros.
Status add_bias_and_activate(cudaStream_t stream, DType dtype, Activation activation, void* y,
                             const void* bias, std::int64_t rows, std::int64_t columns) noexcept;

// out[j] = sum over rows of in[rows, columns], in an order fixed by the shape: runs of 8 rows in
// the type that elements are computed in, added up in double. The workspace has column_sum_bytes
// (plans/reduce_plan.h), aligned to 8 bytes.
Status column_sum(cudaStream_t stream, DType dtype, const void* in, void* out, std::int64_t rows,
                  std::int64_t columns, void* workspace) noexcept;

}  // namespace ebb::cuda
