// Addresses without memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "ebb/allocator/memory_source.h"

namespace ebb::memory {

/// Source of a simulated device. Live ranges never overlap, and none may be read or written. It
/// refuses requests beyond its capacity as the device would. After overdraw() it exceeds the
/// capacity and remembers that, so that programs too large for the device can be measured.
class SimulatedSource final : public MemorySource {
 public:
  SimulatedSource(std::size_t capacity_bytes, std::size_t page_bytes) noexcept
      : capacity_bytes_(capacity_bytes), page_bytes_(page_bytes) {}

  void* reserve(std::size_t bytes) noexcept override;
  void unreserve(void* base, std::size_t bytes) noexcept override;
  bool commit(void* at, std::size_t bytes) noexcept override;
  bool decommit(void* at, std::size_t bytes) noexcept override;
  bool overdraw(std::size_t bytes) noexcept override;
  std::size_t page_bytes() const noexcept override { return page_bytes_; }
  std::size_t capacity_bytes() const noexcept override { return capacity_bytes_; }
  DeviceMemory device_memory() const noexcept override;

  std::size_t committed_bytes() const noexcept {
    return committed_bytes_.load(std::memory_order_relaxed);
  }
  /// Whether a device of this capacity would have served all requests so far.
  bool fits() const noexcept { return fits_.load(std::memory_order_relaxed); }

 private:
  bool find_gap(std::uintptr_t from, std::size_t bytes) noexcept;

  const std::size_t capacity_bytes_;
  const std::size_t page_bytes_;
  std::mutex mutex_;                                // guards the next two
  std::map<std::uintptr_t, std::size_t> reserved_;  // begin -> bytes
  std::uintptr_t cursor_ = kBegin;                  // where the search for a gap continues
  std::atomic<std::size_t> committed_bytes_ = 0;
  std::atomic<std::size_t> may_overdraw_ = 0;  // bytes
  std::atomic<bool> fits_ = true;

  static constexpr std::uintptr_t kBegin = std::uintptr_t{1} << 40;
  static constexpr std::uintptr_t kEnd = std::uintptr_t{1} << 62;
};

}  // namespace ebb::memory
