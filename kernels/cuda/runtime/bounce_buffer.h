// Page-locked memory that small copies to the device go through.
#pragma once
#include <cuda_runtime.h>

#include <array>
#include <cstddef>

#include "ebb/core/device/backend.h"

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

// Passes small copies to the device. CUDA may read pageable memory after an asynchronous copy has
// returned (it promises nothing, and hardware that pages for itself does so). So values are first
// copied here, and the caller's memory is free at once. Two halves take turns: a half is reused
// once the stream has passed all copies out of it.
//
// For one thread at a time.
class BounceBuffer {
 public:
  static constexpr std::size_t kMostBytes = Backend::kAtOnce;  // per copy

  // The stream's device must be current for the calling thread, as for all other members.
  explicit BounceBuffer(cudaStream_t stream) noexcept : stream_(stream) {}
  ~BounceBuffer();
  BounceBuffer(const BounceBuffer&) = delete;
  BounceBuffer& operator=(const BounceBuffer&) = delete;

  // Finds room for `bytes`, at most kMostBytes, to be written at once and then copied in this
  // stream. May wait for the stream and returns its failure. `room` is null where the host can
  // lock no memory.
  cudaError_t take(std::size_t bytes, std::byte*& room) noexcept;

 private:
  static constexpr std::size_t kHalfBytes = 4 * kMostBytes;
  static constexpr std::size_t kAlignment = 64;

  struct Half {
    CudaEvent emptied;
    std::byte* data = nullptr;
    bool is_awaited = false;  // `emptied` was recorded
  };
  bool open() noexcept;

  const cudaStream_t stream_;
  void* memory_ = nullptr;
  bool is_refused_ = false;
  std::array<Half, 2> halves_;
  std::size_t now_ = 0;   // the half in use
  std::size_t used_ = 0;  // bytes of it
};

}  // namespace ebb::cuda
