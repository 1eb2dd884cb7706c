#pragma once
#include <cuda_runtime.h>

namespace ebb::cuda {

// Fails if the current device cannot run this part's kernels: it has neither machine code for the
// device's compute capability nor PTX of a lower one.
cudaError_t probe() noexcept;

}  // namespace ebb::cuda
