#include "ebb/kernels/cuda/runtime/bounce_buffer.h"

namespace ebb::cuda {

BounceBuffer::~BounceBuffer() {
  if (memory_) static_cast<void>(cudaFreeHost(memory_));
}

bool BounceBuffer::open() noexcept {
  if (memory_ || is_refused_) return memory_ != nullptr;
  const bool is_made =
      halves_[0].emptied.make() == cudaSuccess && halves_[1].emptied.make() == cudaSuccess &&
      cudaHostAlloc(&memory_, 2 * kHalfBytes, cudaHostAllocPortable) == cudaSuccess;
  if (!is_made) {
    static_cast<void>(cudaGetLastError());
    memory_ = nullptr;
    is_refused_ = true;
    return false;
  }
  halves_[0].data = static_cast<std::byte*>(memory_);
  halves_[1].data = halves_[0].data + kHalfBytes;
  return true;
}

cudaError_t BounceBuffer::take(std::size_t bytes, std::byte*& room) noexcept {
  room = nullptr;
  if (!open()) return cudaSuccess;
  if (used_ + bytes > kHalfBytes) {
    Half& full = halves_[now_];
    if (const cudaError_t error = cudaEventRecord(full.emptied.get(), stream_);
        error != cudaSuccess)
      return error;
    full.is_awaited = true;
    now_ = 1 - now_;
    used_ = 0;
  }
  Half& half = halves_[now_];
  if (half.is_awaited) {
    if (const cudaError_t error = cudaEventSynchronize(half.emptied.get()); error != cudaSuccess)
      return error;
    half.is_awaited = false;
  }
  room = half.data + used_;
  used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return cudaSuccess;
}

}  // namespace ebb::cuda
