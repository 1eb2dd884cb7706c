// Opening a CUDA device.
#pragma once
#include <cuda_runtime.h>

#include <string>

#include "ebb/core/device/backend.h"

namespace ebb::cuda {

// Opens device `number`. Returns an empty string, or why it cannot be opened, in one line. Reads
// the environment: EBB_CUDA_MEMORY (allocator/cuda/device_memory.h), EBB_CUDA_CHECK=1 for a backend
// that waits for each launch, EBB_CUDA_LSTM=composed for LSTMs without cuDNN, and the files of
// libraries.h. An unknown value is reported like a missing device.
std::string open_device(int number, detail::CudaDevice& device) noexcept;

// Fails if the current device cannot run this part's kernels: it has neither machine code for the
// device's compute capability nor PTX of a lower one.
cudaError_t probe() noexcept;

}  // namespace ebb::cuda
