// What this build knows of CUDA, and what it finds on this machine.
#pragma once

#include <string>

namespace ebb::cuda {

struct Toolkit {
  int compiled_version = 0;  // 13000 for 13.0, as CUDA writes it; 0 in a build without CUDA
  int driver_version = 0;    // the newest CUDA that the driver here serves; 0 without a driver
  int device_count = 0;
};

// Never throws, and leaves no error behind on a machine without a driver.
Toolkit toolkit() noexcept;

// One line for people: "built without CUDA", "CUDA 13.0, no driver here", "CUDA 13.0, driver
// for 13.0, 1 device".
std::string describe(const Toolkit& toolkit);

}  // namespace ebb::cuda
