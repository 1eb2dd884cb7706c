#pragma once
#include <cuda_runtime.h>

namespace ebb::cuda {

// Whether the current device runs what this part was compiled to: neither machine code for its
// compute capability nor PTX from below it is an error.
cudaError_t probe() noexcept;

}  // namespace ebb::cuda
