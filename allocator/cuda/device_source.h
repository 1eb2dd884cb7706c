// Base of the sources of device memory.
#pragma once

#include <atomic>
#include <memory>

#include "ebb/allocator/cuda/live_streams.h"
#include "ebb/allocator/memory_source.h"

namespace ebb::memory::cuda {

/// Other processes and this one's own libraries use the device too. So the capacity is the held
/// memory plus the free memory that the device reports at the moment.
class DeviceSource : public MemorySource {
 public:
  std::size_t page_bytes() const noexcept final { return page_bytes_; }
  std::size_t capacity_bytes() const noexcept final;
  DeviceMemory device_memory() const noexcept final;

 protected:
  DeviceSource(int device, std::size_t page_bytes, std::shared_ptr<LiveStreams> streams) noexcept;

  /// Makes the device current for the calling thread; false if that fails.
  bool enter() const noexcept;
  /// As enter(), then waits until all work queued on the device is done. False if the device is
  /// lost.
  bool enter_at_rest() const noexcept;
  void count_taken(std::size_t bytes) noexcept { held_bytes_ += bytes; }
  void count_given_back(std::size_t bytes) noexcept { held_bytes_ -= bytes; }

 private:
  const int device_;
  const std::size_t page_bytes_;
  const std::shared_ptr<LiveStreams> streams_;
  std::atomic<std::size_t> held_bytes_ = 0;
};

}  // namespace ebb::memory::cuda
