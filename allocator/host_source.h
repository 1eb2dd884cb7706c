// Host memory that is really given back.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "ebb/allocator/memory_source.h"

namespace ebb::memory {

/// Anonymous mappings of their own: what is given back is gone from /proc/self/maps, or cannot be
/// touched where its addresses stay, which malloc does not promise. Memory comes zeroed, and is
/// there when commit() returns: what ebb says is reserved is resident.
///
/// The kernel grants more than there is, and ends the process that uses it. So the capacity is what
/// this process may really have. It is read anew when it is asked for, when it would refuse, when a
/// quarter of what was left has been handed out, and when it is 2 ms old: others take memory too,
/// and so does this process's heap.
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
  std::size_t read() const noexcept;
  bool is_old() const noexcept;
  bool admits(std::size_t committed_bytes, std::size_t bytes) const noexcept;

  const std::size_t page_bytes_;
  const std::optional<std::size_t> fixed_capacity_;
  std::atomic<std::size_t> committed_bytes_ = 0, reserved_addresses_ = 0;
  // As read last; each is used alone. No lock: at a fork() it would be one more to take in order.
  mutable std::atomic<std::size_t> capacity_ = 0, total_ = 0, read_again_at_ = 0;
  mutable std::atomic<std::int64_t> read_time_ = 0;  // steady, in nanoseconds
};

}  // namespace ebb::memory
