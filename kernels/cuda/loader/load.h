// Finds and loads the CUDA part.
#pragma once
#include "ebb/kernels/cuda/loader/part.h"

namespace ebb::cuda {

// CUDA as compiled and as found on this machine. Loads the part; all zero where there is none.
// Leaves no CUDA error behind.
Toolkit toolkit() noexcept;

}  // namespace ebb::cuda
