#pragma once
#include <cuda_runtime.h>

#include "ebb/core/kernels/status.h"
#include "ebb/core/kernels/strided_walk.h"

namespace ebb::cuda {

// to = the elements of from where the walk says, which has at least one.
Status strided_copy(cudaStream_t stream, const void* from, void* to,
                    const StridedWalk& walk) noexcept;
// The other way round: the elements of to where the walk says = from. The rest of it stays.
Status strided_store(cudaStream_t stream, const void* from, void* to,
                     const StridedWalk& walk) noexcept;

}  // namespace ebb::cuda
