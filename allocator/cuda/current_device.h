// The device that a thread's CUDA calls address.
#pragma once

#include <cuda_runtime.h>

namespace ebb::memory::cuda {

/// Selects the device; called before every request to it. The previous device is not restored: it
/// may be device 0, never used by this thread, and selecting that would make a context there.
cudaError_t make_current(int device) noexcept;

}  // namespace ebb::memory::cuda
