// What the CUDA part, a shared library of its own, gives to the rest of ebb, which loads it when a
// CUDA device is first asked for.
#pragma once
#include <atomic>
#include <string>

#include "ebb/core/device/backend.h"

namespace ebb::cuda {

// What the part was compiled with and finds on this machine.
struct Toolkit {
  int compiled_version = 0;  // 13000 for 13.0, as CUDA writes it; 0 without a part
  int driver_version = 0;    // the newest CUDA that the driver here serves; 0 without a driver
  int device_count = 0;
};

// "13.0" of 13000.
std::string version(int number);
// One line for people: "no CUDA part", "CUDA 13.0, no driver here", "CUDA 13.0, driver for 13.0, 1
// device".
std::string describe(const Toolkit& toolkit);

// The functions of the part: sum, matmul_prepare, map_Tanh.
struct KernelTable {
#define EBB_FUNCTION(name, Result, Argument) Result (*name)(Argument);
#define EBB_INSTANCE(walk, Functor) Kernel walk##_##Functor;
#include "ebb/kernels/cuda/loader/kernels.inc"
};

struct Part {
  const char* stamp;  // part_stamp() of the build that made it
  // Before anything else: where core/device/tf32.h says whether TF32 is allowed.
  void (*look_for_tf32_at)(const std::atomic<bool>& place) noexcept;
  Toolkit (*toolkit)() noexcept;
  // Empty where it could be opened, else why not, in one line.
  std::string (*open)(int number, detail::CudaDevice& device) noexcept;
  KernelTable kernels;
};

// The version, and the sizes of what crosses the border: parts of another build are refused, as one
// that an older installation has left.
const char* part_stamp() noexcept;

}  // namespace ebb::cuda

extern "C" {
// All that the part exports.
using ebb_cuda_part_function = const ebb::cuda::Part*();
}
