// Opening a CUDA device.
#pragma once
#include <string>

#include "ebb/core/device/backend.h"

namespace ebb::cuda {

// Empty where number n could be opened, else why not, in one line. From the environment:
// EBB_CUDA_MEMORY (allocator/cuda/device_memory.h), EBB_CUDA_CHECK=1 for a backend that waits for
// each launch, EBB_CUDA_LSTM=composed for LSTMs without cuDNN, and the files of libraries.h. A
// value that means nothing is told as a device that is missing would be.
std::string open_device(int number, detail::CudaDevice& device) noexcept;

}  // namespace ebb::cuda
