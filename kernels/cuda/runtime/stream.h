// A stream of a CUDA device with what belongs to it.
#pragma once
#include <memory>

#include "ebb/allocator/cuda/live_streams.h"
#include "ebb/kernels/cuda/runtime/bounce_buffer.h"
#include "ebb/kernels/cuda/runtime/cuda_event.h"
#include "ebb/kernels/cuda/runtime/library_handles.h"
#include "ebb/kernels/cuda/stream.h"

namespace ebb::cuda {

// What the streams of a device have in common.
struct Common {
  int device = 0;
  std::shared_ptr<memory::cuda::LiveStreams> streams;
#if EBB_HAS_CUBLASLT
  CublasLtHandle cublas_lt;
#endif
};

class CudaStream final : public DeviceStream {
 public:
  // The device is current. Throws Error where it has no more streams.
  explicit CudaStream(std::shared_ptr<Common> common);
  ~CudaStream() override;

  // Recorded by who waits for the stream, again and again: a wait is for the last record before it.
  // The stream is held meanwhile.
  cudaEvent_t event() const noexcept { return event_.get(); }
  memory::cuda::LiveStreams::Member& member() noexcept { return *member_; }
  BounceBuffer& bounce_buffer() noexcept { return *bounce_buffer_; }

  // Handles whose work goes into this stream; cuBLASLt is told so with each call. Null, and
  // `problem`, static text, where there is none. The first call takes long, and device memory.
#if EBB_HAS_CUBLASLT
  cublasLtHandle_t cublas_lt(const char*& problem) noexcept {
    return common_->cublas_lt.get(problem);
  }
#endif
#if EBB_HAS_CUDNN
  cudnnHandle_t cudnn(const char*& problem) noexcept { return cudnn_.get(stream_, problem); }
#endif

 private:
  void close() noexcept;

  const std::shared_ptr<Common> common_;
  CudaEvent event_;
  std::unique_ptr<memory::cuda::LiveStreams::Member> member_;
  std::unique_ptr<BounceBuffer> bounce_buffer_;
#if EBB_HAS_CUDNN
  CudnnHandle cudnn_;
#endif
};

inline CudaStream& cuda_stream(Stream* stream) noexcept {
  return *static_cast<CudaStream*>(stream);
}

}  // namespace ebb::cuda
