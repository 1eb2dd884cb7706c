// Where memory comes from.
#pragma once

#include <cstddef>

namespace ebb::memory {

struct DeviceMemory {
  std::size_t total = 0;
  std::size_t free = 0;
};

/// Addresses, and memory behind them. Bytes and addresses are multiples of page_bytes(). Every
/// function may be called from any thread, for one range by one thread at a time.
class MemorySource {
 public:
  MemorySource() = default;
  MemorySource(const MemorySource&) = delete;
  MemorySource& operator=(const MemorySource&) = delete;
  virtual ~MemorySource() = default;

  /// Addresses without memory. Null where there are none left, or where the device has none to
  /// reserve.
  virtual void* reserve(std::size_t bytes) noexcept = 0;
  /// What reserve() returned, whole, without memory behind any of it.
  virtual void unreserve(void* base, std::size_t bytes) noexcept = 0;
  /// Memory for addresses that have none. False, with nothing changed, where the device refuses.
  virtual bool commit(void* at, std::size_t bytes) noexcept = 0;
  /// Afterwards the device has the bytes back and the addresses stay; false, with nothing changed,
  /// where it does not take them. Work that was asked of the device before may still use them:
  /// where it can, a source waits for it first.
  virtual bool decommit(void* at, std::size_t bytes) noexcept = 0;

  /// Both at once, and both given back at once: all that there is on a device without addresses to
  /// reserve. unmap() is false, with nothing changed, where the device does not take it back.
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

  /// So many bytes of what is committed or mapped next may be past the capacity. False where there
  /// is none to go past: the device is real.
  virtual bool overdraw(std::size_t /*bytes*/) noexcept { return false; }

  virtual std::size_t page_bytes() const noexcept = 0;
  /// The most that it hands out.
  virtual std::size_t capacity_bytes() const noexcept = 0;
  virtual DeviceMemory device_memory() const noexcept = 0;
};

}  // namespace ebb::memory
