// Host memory that really goes back to the system.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "ebb/allocator/host_capacity.h"
#include "ebb/allocator/memory_source.h"

namespace ebb::memory {

/// Anonymous mappings. Returned memory is gone from /proc/self/maps, or cannot be touched if its
/// addresses stay; malloc promises neither. Memory comes zeroed and is resident when commit()
/// returns, so reserved bytes are resident bytes.
///
/// The kernel grants more memory than there is, and kills the process that uses it. So the capacity
/// is the memory this process can really get. It is read anew on request, before a refusal, when a
/// quarter of the rest has been handed out, and when it is 2 ms old: other processes take memory
/// too, and so does this one's heap.
class HostSource final : public MemorySource {
 public:
  /// By default the capacity is EBB_CPU_MEMORY, if that is set. Throws Error if it is no size.
  explicit HostSource(std::optional<std::size_t> capacity_bytes = configured_capacity()) noexcept;

  void* reserve(std::size_t bytes) noexcept override;
  void unreserve(void* base, std::size_t bytes) noexcept override;
  bool commit(void* at, std::size_t bytes) noexcept override;
  bool decommit(void* at, std::size_t bytes) noexcept override;
  std::size_t page_bytes() const noexcept override { return page_bytes_; }
  std::size_t capacity_bytes() const noexcept override;
  DeviceMemory device_memory() const noexcept override;

 private:
  std::size_t read() const noexcept;
  bool is_old() const noexcept;
  bool admits(std::size_t committed_bytes, std::size_t bytes) const noexcept;

  const std::size_t page_bytes_;
  const std::optional<std::size_t> fixed_capacity_;
  std::atomic<std::size_t> committed_bytes_ = 0, reserved_addresses_ = 0;
  // Last reading; each value is used alone. No lock: fork() would have one more to take in order.
  mutable std::atomic<std::size_t> capacity_ = 0, total_ = 0, read_again_at_ = 0;
  mutable std::atomic<std::int64_t> read_time_ = 0;  // steady clock, in nanoseconds
};

}  // namespace ebb::memory
