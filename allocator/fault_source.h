// A source that refuses on demand: what production code meets once a year, in every test run.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "ebb/allocator/memory_source.h"

namespace ebb::memory {

/// Wraps any source. Set up between calls, by the thread that makes them.
class FaultInjectingSource final : public MemorySource {
 public:
  explicit FaultInjectingSource(std::unique_ptr<MemorySource> upstream) noexcept
      : upstream_(std::move(upstream)) {}

  /// The next `successes` maps pass and the one after them is refused, once.
  void fail_map_after(std::size_t successes) noexcept { fail_at_ = maps_ + successes; }
  /// Every map from now on is refused, until called with false.
  void refuse_all(bool refuse) noexcept { refuse_all_ = refuse; }
  /// Refuses what would bring the mapped bytes above `bytes`, as a smaller device would.
  void bound(std::optional<std::size_t> bytes) noexcept { bound_ = bytes; }

  std::size_t maps() const noexcept { return maps_; }  ///< asked for so far, refused ones included
  std::size_t mapped_bytes() const noexcept { return mapped_bytes_; }

  void* map(std::size_t bytes) noexcept override;
  void unmap(void* base, std::size_t bytes) noexcept override;
  bool grow(void* base, std::size_t bytes, std::size_t new_bytes) noexcept override;
  std::size_t page_bytes() const noexcept override { return upstream_->page_bytes(); }
  DeviceMemory device_memory() const noexcept override { return upstream_->device_memory(); }

 private:
  std::unique_ptr<MemorySource> upstream_;
  std::size_t maps_ = 0;
  std::size_t mapped_bytes_ = 0;
  std::optional<std::size_t> fail_at_;
  std::optional<std::size_t> bound_;
  bool refuse_all_ = false;
};

}  // namespace ebb::memory
