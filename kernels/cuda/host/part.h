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

// A function of the part for each kernel: a member of the kernel's name.
struct KernelTable {
#define EBB_KERNEL(name) Kernel name;
#define EBB_PREPARED(name) \
  Kernel name;             \
  PrepareRule name##_prepare;
#define EBB_MERGED(name) \
  Kernel name;           \
  MergedKernel name##_merged;
#include "ebb/kernels/cuda/kernels.inc"
#undef EBB_KERNEL
#undef EBB_PREPARED
#undef EBB_MERGED
  // And of each functor: map_Tanh, zip_Add.
#define EBB_UNARY(name, Functor) Kernel map_##Functor;
#define EBB_BINARY(name, Functor) Kernel zip_##Functor;
#define EBB_PAIR(name, Functor) Kernel zip_##Functor;
#include "ebb/core/kernels/functors/families.inc"
#undef EBB_UNARY
#undef EBB_BINARY
#undef EBB_PAIR
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

// The version, a digest of the headers of what crosses the border, and the compiler's idea of their
// layout: parts of another build are refused, as one that an older installation has left.
const char* part_stamp() noexcept;

}  // namespace ebb::cuda

extern "C" {
// All that the part exports.
using ebb_cuda_part_function = const ebb::cuda::Part*();
}
