// What CUDA answers, in the words of a Status.
#pragma once
#include <cuda_runtime.h>

#include <atomic>
#include <mutex>

#include "ebb/core/kernels/status.h"

namespace ebb::cuda {

// "cudaErrorIllegalAddress: an illegal memory access was encountered".
std::string text_of(cudaError_t error);

// It has done nothing. Clears the thread's last error, which would be the answer of the next call
// that asks for it as well.
Status refusal(cudaError_t error) noexcept;

// Whether a device is lost: work that failed on it after it was asked for takes the whole context
// along, and nothing that is asked of it later succeeds. The first such failure is the answer to
// everything from then on.
class Loss {
 public:
  bool is_lost() const noexcept { return problem_.load(std::memory_order_acquire) != nullptr; }
  // That answer; ok while it is not lost.
  Status status() const noexcept;
  // `name`: the operator's, if it is known whose work it was; else null.
  Status lose(cudaError_t error, const char* name) noexcept;

 private:
  std::mutex mutex_;  // of who is first
  std::atomic<const char*> problem_ = nullptr;
  std::atomic<int> code_ = 0;  // set before the problem is
};

}  // namespace ebb::cuda
