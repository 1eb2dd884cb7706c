#include "ebb/allocator/cuda/live_streams.h"

#include <utility>

#include "ebb/allocator/cuda/current_device.h"

namespace ebb::memory::cuda {

LiveStreams::Member::Member(std::shared_ptr<LiveStreams> all, cudaStream_t stream)
    : all_(std::move(all)), stream_(stream) {
  const std::lock_guard lock(all_->mutex_);
  all_->members_.push_back(this);
}

LiveStreams::Member::~Member() {
  const std::lock_guard lock(all_->mutex_);
  std::erase(all_->members_, this);
}

cudaError_t LiveStreams::wait_for_all() noexcept {
  const std::lock_guard lock(mutex_);
  for (Member* member : members_) {
    const auto turn = member->hold();
    const std::uint64_t puts = member->puts();
    if (puts == member->done_) continue;
    const cudaError_t error = cudaStreamSynchronize(member->stream_);
    if (!succeeded(error)) return error;
    member->done_ = puts;
  }
  return cudaSuccess;
}

}  // namespace ebb::memory::cuda
