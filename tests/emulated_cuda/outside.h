// Kernels of a program that has loaded the emulated device, beside the kernels of the CUDA part, as
// a program compiled by nvcc may have. Its files are compiled against shim/ with
// EBB_EMULATED_OUTSIDE and linked to outside/program.cpp. Threads of such kernels must not wait for
// each other.
#pragma once
#include <cuda_runtime.h>

namespace ebb::emulated {

struct Outside {
  const uint3 *thread, *block;
  const dim3 *block_size, *grid_size;
  cudaError_t (*launch)(const cudaLaunchConfig_t* config, const KernelCall* call);
  cudaError_t (*last_error)();
  void (*barrier)(const char* file, int line);  // for nvrtc/, whose kernels may wait
};

}  // namespace ebb::emulated

extern "C" __attribute__((visibility("default"))) const ebb::emulated::Outside*
ebb_emulated_outside();
