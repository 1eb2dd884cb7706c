// Page-locked memory that small copies to the device go through.
#pragma once
#include <cuda_runtime.h>

#include <array>
#include <cstddef>

#include "ebb/kernels/cuda/runtime/cuda_event.h"

namespace ebb::cuda {

// Passes small copies to the device. CUDA may read pageable memory after an asynchronous copy has
// returned (it promises nothing, and hardware that pages for itself does so). So values are first
// copied here, and the caller's memory is free at once. Two halves take turns: a half is reused
// once the stream has passed all copies out of it.
//
// For one thread at a time.
class BounceBuffer {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 10;  // per copy

  // The stream's device must be current for the calling thread, as for all other members.
  explicit BounceBuffer(cudaStream_t stream) noexcept : stream_(stream) {}
  ~BounceBuffer();
  BounceBuffer(const BounceBuffer&) = delete;
  BounceBuffer& operator=(const BounceBuffer&) = delete;

  // Finds room for `bytes`, at most kMostBytes, to be written at once and then copied in this
  // stream. May wait for the stream and returns its failure. `place` is null where the host can
  // lock no memory.
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
