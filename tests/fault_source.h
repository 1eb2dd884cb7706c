// A source of memory that refuses on demand.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>

#include "ebb/allocator/memory_source.h"

namespace ebb::tests {

/// Wraps any source. Set up between calls, by the thread that makes them.
class FaultInjectingSource final : public memory::MemorySource {
 public:
  explicit FaultInjectingSource(std::unique_ptr<memory::MemorySource> upstream) noexcept
      : upstream_(std::move(upstream)) {}

  /// The next `successes` commits (and maps) pass and the one after them is refused, once.
  void fail_commit_after(std::size_t successes) noexcept { fail_at_ = commits_ + successes; }
  /// Every commit from now on is refused, until called with false.
  void refuse_all(bool refuse) noexcept { refuse_all_ = refuse; }
  /// Nothing is taken back any more, until called with false.
  void keep_all(bool keep) noexcept { keep_all_ = keep; }
  /// No addresses are given any more, until called with false.
  void refuse_addresses(bool refuse) noexcept { refuse_addresses_ = refuse; }
  /// Refuses what would bring the committed bytes above `bytes`, as a smaller device would.
  void bound(std::optional<std::size_t> bytes) noexcept { bound_ = bytes; }

  std::size_t commits() const noexcept { return commits_; }  ///< asked for, refused ones included
  std::size_t committed_bytes() const noexcept { return committed_bytes_; }

  void* reserve(std::size_t bytes) noexcept override {
    return refuse_addresses_ ? nullptr : upstream_->reserve(bytes);
  }
  void unreserve(void* base, std::size_t bytes) noexcept override {
    upstream_->unreserve(base, bytes);
  }
  bool commit(void* at, std::size_t bytes) noexcept override {
    const bool fails_now = fail_at_ == commits_++;
    if (fails_now) fail_at_.reset();
    if (fails_now || refuse_all_ || (bound_ && committed_bytes_ + bytes > *bound_)) return false;
    if (!upstream_->commit(at, bytes)) return false;
    committed_bytes_ += bytes;
    return true;
  }
  bool decommit(void* at, std::size_t bytes) noexcept override {
    if (keep_all_ || !upstream_->decommit(at, bytes)) return false;
    committed_bytes_ -= bytes;
    return true;
  }
  bool overdraw(std::size_t bytes) noexcept override {
    return !refuse_all_ && !bound_ && upstream_->overdraw(bytes);
  }
  std::size_t page_bytes() const noexcept override { return upstream_->page_bytes(); }
  std::size_t capacity_bytes() const noexcept override {
    return std::min(bound_.value_or(~std::size_t{0}), upstream_->capacity_bytes());
  }
  memory::DeviceMemory device_memory() const noexcept override {
    return upstream_->device_memory();
  }

 private:
  std::unique_ptr<memory::MemorySource> upstream_;
  std::size_t commits_ = 0;
  std::size_t committed_bytes_ = 0;
  std::optional<std::size_t> fail_at_;
  std::optional<std::size_t> bound_;
  bool refuse_all_ = false, keep_all_ = false, refuse_addresses_ = false;
};

}  // namespace ebb::tests
