// Addresses without memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>

#include "ebb/allocator/memory_source.h"

namespace ebb::memory {

/// The twin of a device: live segments never overlap, and none may be read or written. It goes past
/// its capacity, so that a program can be measured on a device it does not fit on, and remembers.
class SimulatedSource final : public MemorySource {
 public:
  SimulatedSource(std::size_t capacity_bytes, std::size_t page_bytes) noexcept
      : capacity_bytes_(capacity_bytes), page_bytes_(page_bytes) {}

  void* map(std::size_t bytes) noexcept override;
  void unmap(void* base, std::size_t bytes) noexcept override;
  std::size_t page_bytes() const noexcept override { return page_bytes_; }
  DeviceMemory device_memory() const noexcept override;

  std::size_t capacity_bytes() const noexcept { return capacity_bytes_; }
  std::size_t mapped_bytes() const noexcept {
    return mapped_bytes_.load(std::memory_order_relaxed);
  }
  std::size_t most_mapped_bytes() const noexcept {
    return most_mapped_bytes_.load(std::memory_order_relaxed);
  }
  /// Whether a device of this capacity would have served every map() so far.
  bool fits() const noexcept { return most_mapped_bytes() <= capacity_bytes_; }

 private:
  bool find_gap(std::uintptr_t from, std::size_t bytes) noexcept;

  const std::size_t capacity_bytes_;
  const std::size_t page_bytes_;
  std::map<std::uintptr_t, std::size_t> mapped_;  // begin -> bytes
  std::uintptr_t cursor_ = kBegin;                // where the search for a gap goes on
  std::atomic<std::size_t> mapped_bytes_ = 0;     // written under the allocator's lock only
  std::atomic<std::size_t> most_mapped_bytes_ = 0;

  static constexpr std::uintptr_t kBegin = std::uintptr_t{1} << 40;
  static constexpr std::uintptr_t kEnd = std::uintptr_t{1} << 60;
};

}  // namespace ebb::memory
