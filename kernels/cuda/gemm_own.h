#pragma once
#include <cuda_runtime.h>

#include "ebb/core/kernels/status.h"
#include "ebb/kernels/cuda/host/product_memory.h"

namespace ebb::cuda {

// The product by a kernel of ebb's own, for every shape and alignment: where cuBLASLt has none or
// is not there. With k = 0 it writes zeros.
Status multiply_own(cudaStream_t stream, const ProductShape& shape, const void* a, const void* b,
                    void* c, bool accumulate) noexcept;

}  // namespace ebb::cuda
