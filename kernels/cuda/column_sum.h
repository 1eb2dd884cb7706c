#pragma once
#include "ebb/kernels/cuda/plans/reduce_plan.h"
#include "ebb/kernels/cuda/stream.h"

namespace ebb::cuda {

// out[j] = sum over rows of in[rows, columns], in an order fixed by the shape: runs of 8 rows in
// the type that elements are computed in, added up in double. The workspace has column_sum_bytes
// (plans/reduce_plan.h), aligned to 8 bytes.
template <class T>
Status column_sum(cudaStream_t stream, const T* in, T* out, std::int64_t rows, std::int64_t columns,
                  void* workspace) noexcept;

}  // namespace ebb::cuda
