#include "ebb/kernels/cuda/runtime/stream.h"

#include <string>
#include <utility>

#include "ebb/allocator/cuda/current_device.h"
#include "ebb/allocator/error.h"
#include "ebb/kernels/cuda/runtime/failure.h"

namespace ebb::cuda {

std::uint64_t CudaStream::next_serial() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

CudaStream::CudaStream(std::shared_ptr<Common> common) : common_(std::move(common)) {
  cudaError_t error = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  if (error == cudaSuccess) error = event_.make();
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    close();
    throw Error("cuda:" + std::to_string(common_->device) +
                ": no stream could be made: " + text_of(error));
  }
  bounce_buffer_.emplace(stream_);
  copies_.emplace(stream_);
  try {
    member_ = std::make_unique<memory::cuda::LiveStreams::Member>(common_->streams, stream_);
  } catch (...) {
    close();
    throw;
  }
}

// Waits first, since work may still use the bounce buffer.
void CudaStream::rest() noexcept {
  static_cast<void>(cudaStreamSynchronize(stream_));
  bounce_buffer_.emplace(stream_);
  copies_.emplace(stream_);
}

// cuDNN's handle goes before its stream.
CudaStream::~CudaStream() {
  static_cast<void>(memory::cuda::make_current(common_->device));
  rest();
  member_.reset();
  copies_.reset();
#if EBB_HAS_CUDNN
  cudnn_.close();
#endif
  close();
}

void CudaStream::close() noexcept {
  if (stream_) static_cast<void>(cudaStreamDestroy(stream_));
  stream_ = nullptr;
  static_cast<void>(cudaGetLastError());
}

#if EBB_HAS_CUDNN
cudnnHandle_t CudaStream::cudnn_or_none(const char* name) {
  const char* problem = nullptr;
  const cudnnHandle_t handle = cuda::cudnn() == nullptr ? nullptr : cudnn(problem);
  auto use = Common::UseOfCudnn::undecided;
  const auto wanted = handle != nullptr ? Common::UseOfCudnn::yes : Common::UseOfCudnn::no;
  if (common_->use_of_cudnn.compare_exchange_strong(use, wanted)) use = wanted;
  if (use == Common::UseOfCudnn::no) return nullptr;
  if (handle == nullptr)
    throw Error(std::string("[") + name + "] " + problem +
                " now, as it did before: it takes memory of its own");
  return handle;
}
#endif

}  // namespace ebb::cuda
