#pragma once
#include <cuda_runtime.h>

#include "ebb/core/kernels/kernel.h"
#include "ebb/core/kernels/strided_walk.h"

namespace ebb::cuda {

// Gathers: to[i] = element i of the walk over `from`. The walk has at least one element.
Status strided_copy(cudaStream_t stream, const void* from, void* to,
                    const StridedWalk& walk) noexcept;
// For core/kernels/layout_kernels.inc, which says what they do.
Status strided_copy(const KernelContext& context, const Buffer& in, const Buffer& out,
                    const StridedWalk& walk) noexcept;
Status strided_store(const KernelContext& context, const Buffer& in, const Buffer& out,
                     const StridedWalk& walk) noexcept;
Status strided_store_at(const KernelContext& context, const Buffer& in, const Buffer& out,
                        const StridedWalk& walk, const Buffer& begin, std::int64_t last) noexcept;

}  // namespace ebb::cuda
