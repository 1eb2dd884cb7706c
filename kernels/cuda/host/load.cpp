// Stands in for the CUDA part in a build without CUDA.
#include "ebb/kernels/cuda/runtime/toolkit.h"

namespace ebb::cuda {

Toolkit toolkit() noexcept { return {}; }

}  // namespace ebb::cuda
