// The device that a thread's CUDA calls address.
#pragma once

#include <cuda_runtime.h>

namespace ebb::memory::cuda {

/// Selects the device; called before every request to it. The previous device is not restored: it
/// may be device 0, never used by this thread, and selecting that would make a context there.
cudaError_t make_current(int device) noexcept;

/// Whether a call succeeded. A failure is not left for a later call to report.
inline bool succeeded(cudaError_t error) noexcept {
  if (error != cudaSuccess) static_cast<void>(cudaGetLastError());
  return error == cudaSuccess;
}

}  // namespace ebb::memory::cuda
