#include "ebb/allocator/cuda/device_source.h"

#include <utility>

#include "ebb/allocator/cuda/current_device.h"

namespace ebb::memory::cuda {

DeviceSource::DeviceSource(int device, std::size_t page_bytes,
                           std::shared_ptr<LiveStreams> streams) noexcept
    : device_(device), page_bytes_(page_bytes), streams_(std::move(streams)) {}

bool DeviceSource::enter() const noexcept { return make_current(device_) == cudaSuccess; }

bool DeviceSource::enter_at_rest() const noexcept {
  return enter() && streams_->wait_for_all() == cudaSuccess;
}

// Zeros if the device is lost.
DeviceMemory DeviceSource::device_memory() const noexcept {
  DeviceMemory memory;
  if (enter() && cudaMemGetInfo(&memory.free, &memory.total) == cudaSuccess) return memory;
  static_cast<void>(cudaGetLastError());
  return {};
}

std::size_t DeviceSource::capacity_bytes() const noexcept {
  const std::size_t free = device_memory().free;
  return held_bytes_ + free / page_bytes_ * page_bytes_;
}

}  // namespace ebb::memory::cuda
