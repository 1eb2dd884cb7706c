// Memory of the deferred device: the host can neither read nor write it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "ebb/allocator/memory_source.h"

namespace ebb::tests {

// Two address ranges of one size. What is handed out lies in the first, which is never backed: to
// touch it ends the process. The device's own work finds the bytes in the second, a constant
// distance away, where memory is there from commit() to decommit(). No two reserved ranges touch,
// and an address is reserved again as late as possible. May be used from any thread.
class DeferredMemory {
 public:
  // Throws Error where the address space refuses.
  explicit DeferredMemory(std::size_t capacity_bytes);
  ~DeferredMemory();
  DeferredMemory(const DeferredMemory&) = delete;
  DeferredMemory& operator=(const DeferredMemory&) = delete;

  void* reserve(std::size_t bytes) noexcept;
  // All of what reserve() returned, without memory: anything else ends the process.
  void unreserve(void* base, std::size_t bytes) noexcept;
  // Of what is reserved and has no memory: anything else ends the process.
  bool commit(void* at, std::size_t bytes) noexcept;
  // Tells before_decommit first: work may still use it. Of what has memory: anything else ends the
  // process.
  void decommit(void* at, std::size_t bytes) noexcept;

  // A number for the memory behind all of it, another one once any of it has been given back and
  // committed anew; 0: some has none.
  std::uint64_t generation_of(const void* address, std::size_t bytes) const noexcept;
  // Whether a part of it lies where the device's memory is.
  bool overlaps(const void* address, std::size_t bytes) const noexcept;
  // Where the device's work finds it.
  std::byte* backing(const void* address) const noexcept;

  std::size_t capacity_bytes() const noexcept { return capacity_bytes_; }
  std::size_t page_bytes() const noexcept { return page_bytes_; }
  std::size_t committed_bytes() const noexcept;

  void set_before_decommit(std::function<void(const void* base, std::size_t bytes)> call);

 private:
  struct Piece {
    std::size_t bytes;
    std::uint64_t number;  // never given twice
  };
  using Pieces = std::map<std::uintptr_t, Piece>;
  void split(std::uintptr_t at);
  bool find_gap(std::uintptr_t from, std::size_t bytes) noexcept;

  const std::size_t page_bytes_;
  const std::size_t capacity_bytes_;
  std::uintptr_t begin_ = 0;    // of what is handed out
  std::uintptr_t backing_ = 0;  // of where it is backed

  std::mutex calling_;  // held while before_decommit_ runs, so that it can be taken away
  std::function<void(const void*, std::size_t)> before_decommit_;

  mutable std::mutex mutex_;  // of all that follows
  std::map<std::uintptr_t, std::size_t> reserved_;
  Pieces pieces_;              // that have memory
  std::uintptr_t cursor_ = 0;  // where the search for a gap goes on
  std::size_t committed_bytes_ = 0;
  std::uint64_t commits_ = 0;  // so far
};

// What an allocator is given; the backend shares the memory.
class DeferredSource final : public memory::MemorySource {
 public:
  explicit DeferredSource(std::shared_ptr<DeferredMemory> memory) noexcept
      : memory_(std::move(memory)) {}

  void* reserve(std::size_t bytes) noexcept override { return memory_->reserve(bytes); }
  void unreserve(void* base, std::size_t bytes) noexcept override {
    memory_->unreserve(base, bytes);
  }
  bool commit(void* at, std::size_t bytes) noexcept override { return memory_->commit(at, bytes); }
  bool decommit(void* at, std::size_t bytes) noexcept override {
    memory_->decommit(at, bytes);
    return true;
  }
  std::size_t page_bytes() const noexcept override { return memory_->page_bytes(); }
  std::size_t capacity_bytes() const noexcept override { return memory_->capacity_bytes(); }
  memory::DeviceMemory device_memory() const noexcept override {
    const std::size_t total = memory_->capacity_bytes();
    return {.total = total, .free = total - memory_->committed_bytes()};
  }

 private:
  const std::shared_ptr<DeferredMemory> memory_;
};

}  // namespace ebb::tests
