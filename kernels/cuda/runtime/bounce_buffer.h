// Page-locked memory that small copies to the device go through.
#pragma once
#include <cuda_runtime.h>

#include <array>
#include <cstddef>

#include "ebb/kernels/cuda/runtime/cuda_event.h"

namespace ebb::cuda {

// What is copied from pageable memory may be read after the call has returned (CUDA promises
// nothing for the asynchronous form, and hardware that pages for itself does so). So values go
// through here and the caller has his memory back at once. Two halves by turns: one is written
// again when the stream has come past all that was copied out of it.
//
// For one thread at a time.
class BounceBuffer {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 10;  // of one copy

  // The stream is of the calling thread's current device, as in all that follows.
  explicit BounceBuffer(cudaStream_t stream) noexcept : stream_(stream) {}
  ~BounceBuffer();
  BounceBuffer(const BounceBuffer&) = delete;
  BounceBuffer& operator=(const BounceBuffer&) = delete;

  // A place for so many bytes, at most kMostBytes, to be written at once and copied in this stream
  // then. May wait for the stream: a failure is its. Null where the host locks no memory.
  cudaError_t take(std::size_t bytes, std::byte*& place) noexcept;

 private:
  static constexpr std::size_t kHalfBytes = 4 * kMostBytes;
  static constexpr std::size_t kAlignment = 64;

  struct Half {
    CudaEvent passed;
    std::byte* data = nullptr;
    bool is_awaited = false;  // `passed` was recorded
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
