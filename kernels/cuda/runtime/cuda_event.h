#pragma once
#include <cuda_runtime.h>

namespace ebb::cuda {

// A point in a stream, without timing. Null until make().
class CudaEvent {
 public:
  CudaEvent() = default;
  ~CudaEvent() {
    if (event_) static_cast<void>(cudaEventDestroy(event_));
  }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  cudaError_t make() noexcept {
    return event_ ? cudaSuccess : cudaEventCreateWithFlags(&event_, cudaEventDisableTiming);
  }
  cudaEvent_t get() const noexcept { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace ebb::cuda
