#include "ebb/allocator/cuda/current_device.h"

namespace ebb::memory::cuda {

cudaError_t make_current(int device) noexcept {
  // A new thread reports device 0 but has no context, which driver functions may need.
  thread_local bool has_context = false;
  int current = -1;
  if (has_context && cudaGetDevice(&current) == cudaSuccess && current == device) [[likely]]
    return cudaSuccess;
  const cudaError_t error = cudaSetDevice(device);
  has_context = succeeded(error);
  return error;
}

}  // namespace ebb::memory::cuda
