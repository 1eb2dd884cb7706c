// Sources of memory with a test's own behaviour, and one that refuses on demand.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>

#include "ebb/allocator/memory_source.h"

namespace ebb::tests {

/// Forwards every call. A test overrides the calls that it is about.
class ForwardingSource : public memory::MemorySource {
 public:
  explicit ForwardingSource(std::shared_ptr<memory::MemorySource> upstream) noexcept
      : upstream_(std::move(upstream)) {}

  void* reserve(std::size_t bytes) noexcept override { return upstream_->reserve(bytes); }
  void unreserve(void* base, std::size_t bytes) noexcept override {
    upstream_->unreserve(base, bytes);
  }
  bool commit(void* at, std::size_t bytes) noexcept override {
    return upstream_->commit(at, bytes);
  }
  bool decommit(void* at, std::size_t bytes) noexcept override {
    return upstream_->decommit(at, bytes);
  }
  bool overdraw(std::size_t bytes) noexcept override { return upstream_->overdraw(bytes); }
  std::size_t page_bytes() const noexcept override { return upstream_->page_bytes(); }
  std::size_t capacity_bytes() const noexcept override { return upstream_->capacity_bytes(); }
  memory::DeviceMemory device_memory() const noexcept override {
    return upstream_->device_memory();
  }

 private:
  const std::shared_ptr<memory::MemorySource> upstream_;
};

/// Wraps any source. Set up between calls, by the thread that makes them.
class FaultInjectingSource final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;

  /// The next `successes` commits (and maps) pass and the one after them is refused, once.
  void fail_commit_after(std::size_t successes) noexcept { fail_at_ = commits_ + successes; }
  /// Every commit from now on is refused, until called with false.
  void refuse_all(bool refuse) noexcept { refuse_all_ = refuse; }
  /// Nothing is taken back any more, until called with false.
  void keep_all(bool keep) noexcept { keep_all_ = keep; }
  /// Memory at this address is not taken back. Null: all is.
  void keep_at(const void* address) noexcept { keep_at_ = address; }
  /// No addresses are given any more, until called with false.
  void refuse_addresses(bool refuse) noexcept { refuse_addresses_ = refuse; }
  /// Refuses what would bring the committed bytes above `bytes`, as a smaller device would.
  void bound(std::optional<std::size_t> bytes) noexcept { bound_ = bytes; }

  std::size_t committed_bytes() const noexcept { return committed_bytes_; }
  std::size_t reserved_addresses() const noexcept { return reserved_addresses_; }  ///< in bytes

  void* reserve(std::size_t bytes) noexcept override {
    void* const base = refuse_addresses_ ? nullptr : ForwardingSource::reserve(bytes);
    if (base) reserved_addresses_ += bytes;
    return base;
  }
  void unreserve(void* base, std::size_t bytes) noexcept override {
    ForwardingSource::unreserve(base, bytes);
    reserved_addresses_ -= bytes;
  }
  bool commit(void* at, std::size_t bytes) noexcept override {
    const bool fails_now = fail_at_ == commits_++;
    if (fails_now) fail_at_.reset();
    if (fails_now || refuse_all_ || (bound_ && committed_bytes_ + bytes > *bound_)) return false;
    if (!ForwardingSource::commit(at, bytes)) return false;
    committed_bytes_ += bytes;
    return true;
  }
  bool decommit(void* at, std::size_t bytes) noexcept override {
    if (keep_all_ || at == keep_at_ || !ForwardingSource::decommit(at, bytes)) return false;
    committed_bytes_ -= bytes;
    return true;
  }
  bool overdraw(std::size_t bytes) noexcept override {
    return !refuse_all_ && !bound_ && ForwardingSource::overdraw(bytes);
  }
  std::size_t capacity_bytes() const noexcept override {
    return std::min(bound_.value_or(~std::size_t{0}), ForwardingSource::capacity_bytes());
  }

 private:
  std::size_t commits_ = 0;
  std::size_t committed_bytes_ = 0, reserved_addresses_ = 0;
  const void* keep_at_ = nullptr;
  std::optional<std::size_t> fail_at_;
  std::optional<std::size_t> bound_;
  bool refuse_all_ = false, keep_all_ = false, refuse_addresses_ = false;
};

}  // namespace ebb::tests
