// What the sources of a device's memory have in common.
#pragma once

#include <atomic>
#include <memory>

#include "ebb/allocator/cuda/live_streams.h"
#include "ebb/allocator/memory_source.h"

namespace ebb::memory::cuda {

/// Others use the device too, this process's own libraries among them: the capacity is what is held
/// and what is free, as the device says when it is asked.
class DeviceSource : public MemorySource {
 public:
  std::size_t page_bytes() const noexcept final { return page_bytes_; }
  std::size_t capacity_bytes() const noexcept final;
  DeviceMemory device_memory() const noexcept final;

 protected:
  DeviceSource(int device, std::size_t page_bytes, std::shared_ptr<LiveStreams> streams) noexcept;

  /// The calling thread may ask something of the device now.
  bool enter() const noexcept;
  /// So may it, and no work that was asked for before is under way. False on a device that is lost.
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
