// Which device a thread's CUDA calls are about.
#pragma once

#include <cuda_runtime.h>

namespace ebb::memory::cuda {

/// Comes before whatever is asked of a device. Nothing is set back afterwards: the thread's device
/// was the number 0 perhaps, which it never used, and to select that again would make a context
/// there.
cudaError_t make_current(int device) noexcept;

}  // namespace ebb::memory::cuda
