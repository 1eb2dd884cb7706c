// Finds and loads the CUDA part.
#pragma once
#include "ebb/kernels/cuda/host/part.h"

namespace ebb::cuda {

// The kernels of the part. Only where it has been loaded: where a CUDA device has been opened.
const KernelTable& loaded() noexcept;

// What is here of CUDA. Loads the part; all zero where there is none. Leaves no error behind.
Toolkit toolkit() noexcept;

}  // namespace ebb::cuda
