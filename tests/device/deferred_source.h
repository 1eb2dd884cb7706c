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
// distance away, where a segment is there from map() to unmap(). No two segments touch, and an
// address is used again as late as possible. May be used from any thread.
class DeferredMemory {
 public:
  // Throws Error where the address space refuses.
  explicit DeferredMemory(std::size_t capacity_bytes);
  ~DeferredMemory();
  DeferredMemory(const DeferredMemory&) = delete;
  DeferredMemory& operator=(const DeferredMemory&) = delete;

  void* map(std::size_t bytes) noexcept;
  // Where the addresses behind it are free.
  bool grow(void* base, std::size_t bytes, std::size_t new_bytes) noexcept;
  // Tells before_unmap first: work may still use the segment.
  // What map() returned, whole: anything else ends the process.
  void unmap(void* base, std::size_t bytes) noexcept;

  // The number of the live segment that all of it lies in, never given twice; 0: there is none.
  std::uint64_t segment_of(const void* address, std::size_t bytes) const noexcept;
  // Whether a part of it lies where segments are.
  bool overlaps(const void* address, std::size_t bytes) const noexcept;
  // Where the device's work finds it.
  std::byte* backing(const void* address) const noexcept;

  std::size_t capacity_bytes() const noexcept { return capacity_bytes_; }
  std::size_t page_bytes() const noexcept { return page_bytes_; }
  std::size_t mapped_bytes() const noexcept;

  void set_before_unmap(std::function<void(const void* base, std::size_t bytes)> call);

 private:
  struct Segment {
    std::size_t bytes;
    std::uint64_t number;
  };
  bool back(std::uintptr_t begin, std::size_t bytes) noexcept;
  bool find_gap(std::uintptr_t from, std::size_t bytes) noexcept;

  const std::size_t page_bytes_;
  const std::size_t capacity_bytes_;
  std::uintptr_t begin_ = 0;    // of what is handed out
  std::uintptr_t backing_ = 0;  // of where it is backed

  std::mutex calling_;  // held while before_unmap_ runs, so that it can be taken away
  std::function<void(const void*, std::size_t)> before_unmap_;

  mutable std::mutex mutex_;  // of all that follows
  std::map<std::uintptr_t, Segment> live_;
  std::uintptr_t cursor_ = 0;  // where the search for a gap goes on
  std::size_t mapped_bytes_ = 0;
  std::uint64_t segments_ = 0;  // so far
};

// What an allocator is given; the backend shares the memory.
class DeferredSource final : public memory::MemorySource {
 public:
  explicit DeferredSource(std::shared_ptr<DeferredMemory> memory) noexcept
      : memory_(std::move(memory)) {}

  void* map(std::size_t bytes) noexcept override { return memory_->map(bytes); }
  bool grow(void* base, std::size_t bytes, std::size_t new_bytes) noexcept override {
    return memory_->grow(base, bytes, new_bytes);
  }
  void unmap(void* base, std::size_t bytes) noexcept override { memory_->unmap(base, bytes); }
  std::size_t page_bytes() const noexcept override { return memory_->page_bytes(); }
  memory::DeviceMemory device_memory() const noexcept override {
    const std::size_t total = memory_->capacity_bytes();
    return {.total = total, .free = total - memory_->mapped_bytes()};
  }

 private:
  const std::shared_ptr<DeferredMemory> memory_;
};

}  // namespace ebb::tests
