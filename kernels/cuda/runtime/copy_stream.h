// Copies to and from page-locked memory that run beside the work of a stream.
#pragma once
#include <array>

#include "ebb/kernels/cuda/runtime/bounce_buffer.h"

namespace ebb::cuda {

// A second stream for the copies of a program in the first. Copies run one after the other. The
// second stream joins a capture of the first when a copy begins, and leaves it when all have ended.
//
// For one thread at a time, with the stream's device current.
class CopyStream {
 public:
  explicit CopyStream(cudaStream_t beside) noexcept : beside_(beside) {}
  ~CopyStream();  // waits

  // Copies after all work that is in the first stream now.
  cudaError_t begin(std::size_t number, void* to, const void* from, std::size_t bytes,
                    cudaMemcpyKind kind) noexcept;
  // Work put into the first stream from now on runs after that copy.
  cudaError_t end(std::size_t number) noexcept;
  // Waits for all copies. A failed program may have begun some that it does not end.
  cudaError_t synchronise() noexcept;

 private:
  cudaError_t open() noexcept;

  const cudaStream_t beside_;
  cudaStream_t stream_ = nullptr;
  CudaEvent begun_;
  // By number, modulo their count. If a later copy has recorded the event again, end() waits for
  // that copy, before which the earlier one is done.
  std::array<CudaEvent, 16> done_;
};

}  // namespace ebb::cuda
