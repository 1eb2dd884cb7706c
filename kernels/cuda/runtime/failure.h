// CUDA's errors as Status.
#pragma once
#include <cuda_runtime.h>

#include <atomic>
#include <mutex>

#include "ebb/core/kernels/status.h"

namespace ebb::cuda {

// "cudaErrorIllegalAddress: an illegal memory access was encountered".
std::string text_of(cudaError_t error);

// A Status that says that nothing was done. Clears the thread's last error, which a later call
// would otherwise report.
Status refusal(cudaError_t error) noexcept;

// Remembers whether a device is lost: work that fails after its launch breaks the whole context,
// and every later call fails. From then on everything returns the first such failure.
class Loss {
 public:
  bool is_lost() const noexcept { return problem_.load(std::memory_order_acquire) != nullptr; }
  // The first failure; ok while the device is not lost.
  Status status() const noexcept;
  // `name`: the operator whose work failed, if known; else null.
  Status lose(cudaError_t error, const char* name) noexcept;

 private:
  std::mutex mutex_;  // decides which failure is first
  std::atomic<const char*> problem_ = nullptr;
  std::atomic<int> code_ = 0;  // set before the problem is
};

}  // namespace ebb::cuda
