// Host memory that is really given back.
#pragma once

#include <atomic>

#include "ebb/allocator/memory_source.h"

namespace ebb::memory {

/// Anonymous mappings of their own: what is given back is gone from /proc/self/maps, or cannot be
/// touched where its addresses stay, which malloc does not promise. Memory comes zeroed and is
/// backed by the kernel on first use.
class HostSource final : public MemorySource {
 public:
  /// Hands out at most so many bytes: the kernel grants more than there is, and ends the process
  /// that uses it.
  explicit HostSource(std::size_t capacity_bytes) noexcept;
  /// As many as this process may have, as read now.
  HostSource();

  void* reserve(std::size_t bytes) noexcept override;
  void unreserve(void* base, std::size_t bytes) noexcept override;
  bool commit(void* at, std::size_t bytes) noexcept override;
  bool decommit(void* at, std::size_t bytes) noexcept override;
  std::size_t page_bytes() const noexcept override { return page_bytes_; }
  std::size_t capacity_bytes() const noexcept override { return capacity_bytes_; }
  DeviceMemory device_memory() const noexcept override;

 private:
  const std::size_t page_bytes_;
  const std::size_t capacity_bytes_;
  std::atomic<std::size_t> committed_bytes_ = 0;
};

}  // namespace ebb::memory
