// The runtime calls of a program's own kernels, forwarded to the emulated device that it has
// loaded.
#include <dlfcn.h>

#include <cstdlib>

#include "ebb/tests/emulated_cuda/outside.h"

namespace ebb::emulated {
namespace {

// Null if the loaded device is not the emulated one.
const Outside* outside() {
  static const Outside* const found = []() -> const Outside* {
    const char* const part = std::getenv("EBB_CUDA_PART");
    void* const library = part ? ::dlopen(part, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) : nullptr;
    if (!library) return nullptr;
    using Function = const Outside*();
    auto* const function =
        reinterpret_cast<Function*>(::dlsym(library, "ebb_emulated_outside"));  // NOLINT
    return function ? function() : nullptr;
  }();
  return found;
}

}  // namespace

}  // namespace ebb::emulated

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

// A thread of a kernel begins: copies its indices from the device.
void ebb_emulated_arrive() {
  const auto& device = *ebb::emulated::outside();
  threadIdx = *device.thread;
  blockIdx = *device.block;
  blockDim = *device.block_size;
  gridDim = *device.grid_size;
}

cudaError_t ebb_emulated_launch(const cudaLaunchConfig_t* config,
                                const ebb::emulated::KernelCall* call) {
  const auto* const device = ebb::emulated::outside();
  return device ? device->launch(config, call) : cudaErrorInvalidDeviceFunction;
}
cudaError_t cudaGetLastError() {
  const auto* const device = ebb::emulated::outside();
  return device ? device->last_error() : cudaSuccess;
}
