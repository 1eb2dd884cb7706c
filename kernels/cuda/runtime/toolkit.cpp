#include "ebb/kernels/cuda/runtime/toolkit.h"

#include <cuda_runtime_api.h>

namespace ebb::cuda {

Toolkit toolkit() noexcept {
  Toolkit found{.compiled_version = CUDART_VERSION};
  // The only call that is safe without a driver: it succeeds and answers 0. Any other would fail
  // and leave its error behind for good.
  if (cudaDriverGetVersion(&found.driver_version) != cudaSuccess || found.driver_version == 0) {
    found.driver_version = 0;
    return found;
  }
  if (cudaGetDeviceCount(&found.device_count) != cudaSuccess) {
    found.device_count = 0;
    static_cast<void>(cudaGetLastError());
  }
  return found;
}

}  // namespace ebb::cuda
