// Host memory that is really given back.
#pragma once

#include <atomic>
#include <optional>

#include "ebb/allocator/memory_source.h"

namespace ebb::memory {

/// Anonymous mappings of their own: what is given back is gone from /proc/self/maps, or cannot be
/// touched where its addresses stay, which malloc does not promise. Memory comes zeroed and is
/// backed by the kernel on first use.
///
/// The kernel grants more than there is, and ends the process that uses it. So the capacity is what
/// this process may really have, read anew when it is asked for, when it would refuse, and after
/// each 64 MiB handed out.
class HostSource final : public MemorySource {
 public:
  /// With EBB_CPU_MEMORY set, that is the capacity. Throws Error where it is no size.
  HostSource();
  explicit HostSource(std::size_t capacity_bytes) noexcept;

  void* reserve(std::size_t bytes) noexcept override;
  void unreserve(void* base, std::size_t bytes) noexcept override;
  bool commit(void* at, std::size_t bytes) noexcept override;
  bool decommit(void* at, std::size_t bytes) noexcept override;
  std::size_t page_bytes() const noexcept override { return page_bytes_; }
  std::size_t capacity_bytes() const noexcept override;
  DeviceMemory device_memory() const noexcept override;

 private:
  explicit HostSource(std::optional<std::size_t> capacity_bytes) noexcept;
  std::size_t capacity_with(std::size_t committed_bytes) const noexcept;
  bool admits(std::size_t committed_bytes, std::size_t bytes) const noexcept;

  const std::size_t page_bytes_;
  const std::optional<std::size_t> fixed_capacity_;
  const std::size_t resident_before_;  // of this process
  std::atomic<std::size_t> committed_bytes_ = 0;
  mutable std::atomic<std::size_t> capacity_ = 0;       // as read last
  mutable std::atomic<std::size_t> read_again_at_ = 0;  // committed bytes
};

}  // namespace ebb::memory
