// Sources of memory.
#pragma once

#include <cstddef>

#include "ebb/allocator/no_copy.h"

namespace ebb::memory {

struct DeviceMemory {
  std::size_t total = 0;
  std::size_t free = 0;
};

/// Hands out addresses, and memory behind them. Sizes and addresses are multiples of page_bytes().
/// Every function may be called from any thread, for one range by one thread at a time.
class MemorySource : NoCopy {
 public:
  virtual ~MemorySource() = default;

  // The next four: by default, for a device without addresses to reserve.
  /// Reserves addresses without memory. Null if none are left, or if the device cannot reserve any.
  virtual void* reserve(std::size_t /*bytes*/) noexcept { return nullptr; }
  /// Gives back a whole range from reserve(), with no memory behind any of it.
  virtual void unreserve(void* /*base*/, std::size_t /*bytes*/) noexcept {}
  /// Puts memory behind addresses that have none. False, with nothing changed, if the device
  /// refuses.
  virtual bool commit(void* /*at*/, std::size_t /*bytes*/) noexcept { return false; }
  /// Gives memory back to the device and keeps the addresses. False, with nothing changed, if the
  /// device does not take it. Work already queued on the device may still use the memory; a source
  /// that can waits for it first.
  virtual bool decommit(void* /*at*/, std::size_t /*bytes*/) noexcept { return false; }

  /// map() reserves and commits, unmap() undoes both: the only way to get memory from a device
  /// without addresses to reserve. unmap() is false, with nothing changed, if the device does not
  /// take it back.
  virtual void* map(std::size_t bytes) noexcept {
    void* base = reserve(bytes);
    if (!base || commit(base, bytes)) return base;
    unreserve(base, bytes);
    return nullptr;
  }
  virtual bool unmap(void* base, std::size_t bytes) noexcept {
    if (!decommit(base, bytes)) return false;
    unreserve(base, bytes);
    return true;
  }

  /// Lets later calls of commit() and map() exceed the capacity by `bytes` in all. False on a real
  /// device, which cannot.
  virtual bool overdraw(std::size_t /*bytes*/) noexcept { return false; }

  virtual std::size_t page_bytes() const noexcept = 0;
  /// Most bytes that it hands out.
  virtual std::size_t capacity_bytes() const noexcept = 0;
  virtual DeviceMemory device_memory() const noexcept = 0;
};

}  // namespace ebb::memory
