// Page-locked host memory, which a device copies from and to on its own.
#pragma once

#include <memory>

#include "ebb/allocator/cuda/live_streams.h"
#include "ebb/allocator/memory_source.h"

namespace ebb::memory::cuda {

/// For profiles without growth, like PlainSource. Requests that the host refuses to lock are
/// refused. Nobody can say beforehand how much it locks, so the capacity is all of the host's
/// memory.
class PinnedSource final : public MemorySource {
 public:
  /// `device` uses the memory in these streams.
  PinnedSource(int device, std::shared_ptr<LiveStreams> streams) noexcept;

  void* map(std::size_t bytes) noexcept override;
  bool unmap(void* base, std::size_t bytes) noexcept override;
  std::size_t page_bytes() const noexcept override { return page_bytes_; }
  std::size_t capacity_bytes() const noexcept override { return device_memory().total; }
  DeviceMemory device_memory() const noexcept override;

 private:
  const int device_;
  const std::size_t page_bytes_;
  const std::shared_ptr<LiveStreams> streams_;
};

}  // namespace ebb::memory::cuda
