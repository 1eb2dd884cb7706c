// Where segments come from.
#pragma once

#include <cstddef>

namespace ebb::memory {

struct DeviceMemory {
  std::size_t total = 0;
  std::size_t free = 0;
};

/// Hands out whole segments and takes them back. An allocator serialises map() and unmap();
/// device_memory() may be called from any thread at any time.
class MemorySource {
 public:
  MemorySource() = default;
  MemorySource(const MemorySource&) = delete;
  MemorySource& operator=(const MemorySource&) = delete;
  virtual ~MemorySource() = default;

  /// `bytes` is a positive multiple of page_bytes(). Null when the device refuses.
  virtual void* map(std::size_t bytes) noexcept = 0;
  /// What map() returned, whole. Afterwards the device has the bytes back. Work that was asked of
  /// the device before may still use them: where it can, a source waits for it first.
  virtual void unmap(void* base, std::size_t bytes) noexcept = 0;
  /// Makes a mapping larger where it is: what is in it stays, and so does its base. False, with
  /// nothing changed, where the source cannot.
  virtual bool grow(void* /*base*/, std::size_t /*bytes*/, std::size_t /*new_bytes*/) noexcept {
    return false;
  }
  virtual std::size_t page_bytes() const noexcept = 0;
  virtual DeviceMemory device_memory() const noexcept = 0;
};

}  // namespace ebb::memory
