// Finds and loads the CUDA part.
#pragma once
#include "ebb/kernels/cuda/loader/part.h"

namespace ebb::cuda {

// What is here of CUDA. Loads the part; all zero where there is none. Leaves no error behind.
Toolkit toolkit() noexcept;

}  // namespace ebb::cuda
