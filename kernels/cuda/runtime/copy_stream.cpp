#include "ebb/kernels/cuda/runtime/copy_stream.h"

namespace ebb::cuda {

CopyStream::~CopyStream() {
  if (!stream_) return;
  static_cast<void>(cudaStreamSynchronize(stream_));
  static_cast<void>(cudaStreamDestroy(stream_));
}

cudaError_t CopyStream::open() noexcept {
  if (stream_) return cudaSuccess;
  cudaError_t error = begun_.make();
  for (CudaEvent& done : done_)
    if (error == cudaSuccess) error = done.make();
  return error == cudaSuccess ? cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) : error;
}

cudaError_t CopyStream::begin(std::size_t number, void* to, const void* from, std::size_t bytes,
                              cudaMemcpyKind kind) noexcept {
  cudaError_t error = open();
  if (error == cudaSuccess) error = cudaEventRecord(begun_.get(), beside_);
  if (error == cudaSuccess) error = cudaStreamWaitEvent(stream_, begun_.get(), 0);
  if (error == cudaSuccess) error = cudaMemcpyAsync(to, from, bytes, kind, stream_);
  if (error == cudaSuccess) error = cudaEventRecord(done_[number % done_.size()].get(), stream_);
  return error;
}

cudaError_t CopyStream::end(std::size_t number) noexcept {
  return cudaStreamWaitEvent(beside_, done_[number % done_.size()].get(), 0);
}

cudaError_t CopyStream::synchronise() noexcept {
  return stream_ ? cudaStreamSynchronize(stream_) : cudaSuccess;
}

}  // namespace ebb::cuda
