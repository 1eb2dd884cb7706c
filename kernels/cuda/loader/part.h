// The interface of the CUDA part, a shared library of its own. ebb loads it when a CUDA device is
// first asked for.
#pragma once
#include <atomic>
#include <string>

#include "ebb/core/device/backend.h"

namespace ebb::cuda {

struct FusedQuery;  // plans/fused_text.h

// The CUDA that the part was compiled with and finds on this machine.
struct Toolkit {
  int compiled_version = 0;  // 13000 for 13.0, as CUDA writes it; 0 without a part
  int driver_version = 0;    // newest CUDA that the driver supports; 0 without a driver
  int device_count = 0;
  bool lacks_cublas_lt = false;  // compiled without its headers
};

// Never throws, and leaves no error behind on a machine without a driver. In ebb itself it loads
// the part first; all zero where there is none.
Toolkit toolkit() noexcept;
// "13.0" for 13000.
std::string version(int number);
// One line for people: "no CUDA part", "CUDA 13.0, no driver here", "CUDA 13.0 without cuBLASLt
// (slow products), driver for 13.0, 1 device".
std::string describe(const Toolkit& toolkit);

// The functions of the part: sum, matmul_prepare, map_Tanh.
struct KernelTable {
#define EBB_FUNCTION(name, Result, Argument) Result (*name)(Argument);
#define EBB_INSTANCE(walk, Functor) Kernel walk##_##Functor;
#include "ebb/kernels/cuda/loader/kernels.inc"
};

struct Part {
  const char* stamp;  // part_stamp() of the build that made it
  // Called first: tells the part the address of the switch of core/kernels/tf32.h.
  void (*look_for_tf32_at)(const std::atomic<bool>& tf32_switch) noexcept;
  // Likewise: tells it the function that warnings go to.
  void (*warn_by)(void (*log_warning)(const std::string& text)) noexcept;
  Toolkit (*toolkit)() noexcept;
  // Opens device `number`. Returns an empty string, or why it cannot be opened, in one line.
  std::string (*open)(int number, detail::CudaDevice& device) noexcept;
  KernelTable kernels;
};

// The version, and the sizes of the types that cross the border. ebb refuses a part of another
// build, such as a leftover of an older installation.
const char* part_stamp() noexcept;

}  // namespace ebb::cuda

extern "C" {
// The part's only exported function.
using ebb_cuda_part_function = const ebb::cuda::Part*();
}
