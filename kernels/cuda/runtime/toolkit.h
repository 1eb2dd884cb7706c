// The CUDA that the part was compiled with, and the CUDA it finds on this machine.
#pragma once
#include "ebb/kernels/cuda/loader/part.h"

namespace ebb::cuda {

// Never throws, and leaves no error behind on a machine without a driver.
Toolkit toolkit() noexcept;

}  // namespace ebb::cuda
