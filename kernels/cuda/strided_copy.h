#pragma once
#include <cuda_runtime.h>

#include "ebb/core/kernels/kernel.h"
#include "ebb/core/kernels/strided_walk.h"

namespace ebb::cuda {

// to = the elements of from where the walk says, which has at least one.
Status strided_copy(cudaStream_t stream, const void* from, void* to,
                    const StridedWalk& walk) noexcept;
// out = the elements of in where the walk says.
Status strided_copy(const KernelContext& context, const Buffer& in, const Buffer& out,
                    const StridedWalk& walk) noexcept;
// The other way round: the elements of to where the walk says = from. The rest of it stays.
Status strided_store(cudaStream_t stream, const void* from, void* to,
                     const StridedWalk& walk) noexcept;
// out = in where the walk says, and `value` elsewhere.
Status place(const KernelContext& context, const Buffer& in, const Buffer& out,
             const StridedWalk& walk, double value) noexcept;

}  // namespace ebb::cuda
