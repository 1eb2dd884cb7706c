// What this build knows of CUDA, and what it finds on this machine.
#pragma once

#include <string>

#include "ebb/kernels/cuda/host/part.h"

namespace ebb::cuda {

// Never throws, and leaves no error behind on a machine without a driver.
Toolkit toolkit() noexcept;

// "13.0" of 13000.
std::string version(int number);

// One line for people: "built without CUDA", "CUDA 13.0, no driver here", "CUDA 13.0, driver
// for 13.0, 1 device".
std::string describe(const Toolkit& toolkit);

}  // namespace ebb::cuda
