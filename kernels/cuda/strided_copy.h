#pragma once
#include <cuda_runtime.h>

#include "ebb/core/kernels/kernel.h"
#include "ebb/core/kernels/strided_walk.h"

namespace ebb::cuda {

// Gathers: to[i] = element i of the walk over `from`. The walk has at least one element.
Status strided_copy(cudaStream_t stream, const void* from, void* to,
                    const StridedWalk& walk) noexcept;
// Gathers the output of a kernel from its first input.
Status strided_copy(const KernelContext& context, const StridedWalk& walk) noexcept;
// Scatters: element i of the walk over `to` = from[i]. The rest of `to` stays.
Status strided_store(cudaStream_t stream, const void* from, void* to,
                     const StridedWalk& walk) noexcept;
// Scatters the first input of a kernel to its output, and writes `value` elsewhere.
Status put(const KernelContext& context, const StridedWalk& walk, double value) noexcept;

}  // namespace ebb::cuda
