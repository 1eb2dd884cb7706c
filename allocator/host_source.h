// Host memory that is really given back.
#pragma once

#include "ebb/allocator/memory_source.h"

namespace ebb::memory {

/// Anonymous mappings of their own: an unmapped segment is gone from /proc/self/maps, which malloc
/// does not promise. Memory comes zeroed and is touched by the kernel on first use.
class HostSource final : public MemorySource {
 public:
  HostSource() noexcept;

  void* map(std::size_t bytes) noexcept override;
  void unmap(void* base, std::size_t bytes) noexcept override;
  bool grow(void* base, std::size_t bytes, std::size_t new_bytes) noexcept override;
  std::size_t page_bytes() const noexcept override { return page_bytes_; }
  /// Free is MemAvailable of /proc/meminfo: what can be had without swapping.
  DeviceMemory device_memory() const noexcept override;

 private:
  const std::size_t page_bytes_;
};

}  // namespace ebb::memory
