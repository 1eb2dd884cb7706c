// A stream of a CUDA device and the objects that belong to it.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "ebb/allocator/cuda/live_streams.h"
#include "ebb/kernels/cuda/runtime/bounce_buffer.h"
#include "ebb/kernels/cuda/runtime/copy_stream.h"
#include "ebb/kernels/cuda/runtime/libraries.h"
#include "ebb/kernels/cuda/stream.h"

namespace ebb::cuda {

class CudaStream;

// Objects shared by all streams of a device.
struct Common {
  int device = 0;
  std::shared_ptr<memory::cuda::LiveStreams> streams;
#if EBB_HAS_CUBLASLT
  CublasLtHandle cublas_lt;
#endif
#if EBB_HAS_CUDNN
  // Forward and backward must both use cuDNN or both not, since each form reads only its own
  // reserve. A handle may be available at one time and not at another, so the first request decides
  // for all.
  enum class UseOfCudnn { undecided, yes, no };
  std::atomic<UseOfCudnn> use_of_cudnn = UseOfCudnn::undecided;
#endif
  std::weak_ptr<CudaStream> nccl;  // one for the links of all worlds, so that they keep one order
  // Of a link that has failed. Values on the device may be wrong until the program begins anew, by
  // a world that it makes after that.
  std::atomic<const char*> nccl_problem = nullptr;
  std::atomic<std::chrono::steady_clock::time_point> nccl_failed_at = {};
};

class CudaStream final : public DeviceStream {
 public:
  // The device must be current. Throws Error where it has no more streams.
  explicit CudaStream(std::shared_ptr<Common> common);
  ~CudaStream() override;

  // The event that others wait for, recorded anew for each wait: a wait refers to the latest record
  // before it. Hold the stream meanwhile.
  cudaEvent_t event() const noexcept { return event_.get(); }
  memory::cuda::LiveStreams::Member& member() noexcept { return *member_; }

  void count_put() noexcept { member_->count_put(); }
  std::uint64_t puts() const noexcept { return member_->puts(); }
  // Whether `other` was the last to wait for this stream, and has waited for all that is in it.
  // Hold the stream, as for note_wait_of().
  bool was_awaited_by(const CudaStream& other) const noexcept {
    return awaited_by_ == other.serial_ && awaited_puts_ == puts();
  }
  // Notes that `other` has waited for the first `puts` pieces of work.
  void note_wait_of(const CudaStream& other, std::uint64_t puts) noexcept {
    awaited_by_ = other.serial_;
    awaited_puts_ = puts;
  }
  // Notes that the copies put so far are those that the next wait_for_copies() waits for.
  cudaError_t note_copy() noexcept {
    const cudaError_t error = copied_.make();
    return error == cudaSuccess ? cudaEventRecord(copied_.get(), stream_) : error;
  }
  cudaError_t wait_for_copies() noexcept {
    return copied_.get() ? cudaEventSynchronize(copied_.get()) : cudaSuccess;
  }
  const std::shared_ptr<Common>& common() const noexcept { return common_; }
  BounceBuffer& bounce_buffer() noexcept { return *bounce_buffer_; }
  CopyStream& copies() noexcept { return *copies_; }
  // Gives back what the stream's copies need, after its work. They take it again.
  void rest() noexcept;

  // Handles that work in this stream; cuBLASLt gets the stream with each call. Return null and set
  // `problem`, static text, where there is none. The first call is slow and takes device memory.
#if EBB_HAS_CUBLASLT
  cublasLtHandle_t cublas_lt(const char*& problem) noexcept {
    return common_->cublas_lt.get(problem);
  }
#endif
#if EBB_HAS_CUDNN
  cudnnHandle_t cudnn(const char*& problem) noexcept { return cudnn_.get(stream_, problem); }
  // The handle for the named operator, or null where the device does without cuDNN: the first
  // question decides that, so that what is free later does not change results. Throws Error where
  // the device computes by cuDNN, which cannot start in this stream now.
  cudnnHandle_t cudnn_or_none(const char* name);
#endif

 private:
  void close() noexcept;

  static std::uint64_t next_serial() noexcept;

  const std::shared_ptr<Common> common_;
  const std::uint64_t serial_ = next_serial();       // unlike addresses, never reused
  std::uint64_t awaited_by_ = 0, awaited_puts_ = 0;  // a stream's serial, from 1
  CudaEvent event_, copied_;
  std::unique_ptr<memory::cuda::LiveStreams::Member> member_;
  std::optional<BounceBuffer> bounce_buffer_;
  std::optional<CopyStream> copies_;
#if EBB_HAS_CUDNN
  CudnnHandle cudnn_;
#endif
};

inline CudaStream& cuda_stream(Stream* stream) noexcept {
  return *static_cast<CudaStream*>(stream);
}

}  // namespace ebb::cuda
