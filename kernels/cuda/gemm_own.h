#pragma once
#include <cuda_runtime.h>

#include "ebb/core/kernels/status.h"
#include "ebb/kernels/cuda/product.h"

namespace ebb::cuda {

// The product by a kernel of ebb's own, for every shape and alignment: where cuBLASLt has none or
// is not there. With k = 0 the sums are zeros. It makes every epilogue but column sums.
Status multiply_own(cudaStream_t stream, const ProductShape& shape, Epilogue epilogue,
                    const ProductOperands& operands) noexcept;

}  // namespace ebb::cuda
