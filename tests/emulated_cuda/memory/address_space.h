// Device memory: addresses that the host cannot touch, and the bytes behind them.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "ebb/tests/emulated_cuda/options.h"

namespace ebb::emulated {

// Two address ranges of the same size. Device addresses lie in the first, which is never backed.
// The second, its alias, is a constant distance away and has memory wherever the first is mapped;
// when a kernel runs, its pointers are moved there. Reserved ranges never touch. An address that
// was unreserved is reserved again as late as possible. May be used from any thread.
class AddressSpace {
 public:
  // Unit of creating, mapping and reserving.
  static std::size_t granularity() noexcept { return options().page_bytes; }
  enum class Answer { ok, invalid, full, mapped, not_mapped };
  using Handle = unsigned long long;

  AddressSpace();

  // Ranges of addresses.
  Answer reserve(std::size_t bytes, std::uintptr_t& address);
  Answer unreserve(std::uintptr_t address, std::size_t bytes);

  // Memory stays until it is both released and unmapped everywhere.
  Answer create(std::size_t bytes, Handle& handle);
  Answer release(Handle handle);
  Answer map(std::uintptr_t address, std::size_t bytes, std::size_t offset, Handle handle);
  Answer unmap(std::uintptr_t address, std::size_t bytes);
  Answer allow_access(std::uintptr_t address, std::size_t bytes);

  // A block between unmapped pages. It ends at the end of a page, up to rounding to 256 bytes;
  // free() checks these rounding bytes and sets `spoiled` if they were written.
  Answer allocate(std::size_t bytes, std::uintptr_t& address);
  Answer free(std::uintptr_t address, bool& spoiled);

  bool holds(const void* address) const noexcept;
  // Returns the address where kernels find the bytes of a device address; other addresses
  // unchanged.
  void* alias(const void* address) const noexcept;
  // Inverse of alias(). Null if no device address belongs to `alias`.
  void* device_address(const void* alias) const noexcept;
  // Whether all of it is mapped and accessible.
  bool is_mapped(const void* address, std::size_t bytes) const;

  std::size_t capacity() const noexcept { return capacity_; }
  void set_capacity(std::size_t bytes) noexcept { capacity_ = bytes; }
  std::size_t used() const noexcept { return used_; }

 private:
  struct Physical {
    std::uint64_t offset = 0;  // in the file
    std::size_t bytes = 0;
    int mappings = 0;
    bool released = false;
    bool is_filled = false;  // with garbage, when it was first made accessible
  };
  // Parts of the file that are no longer used.
  class Freed;
  struct Mapping {
    std::size_t bytes = 0;
    Handle handle = 0;
    bool accessible = false;
  };
  struct Plain {
    std::uintptr_t range = 0;
    std::size_t range_bytes = 0, bytes = 0;
    Handle handle = 0;
  };
  using Mappings = std::map<std::uintptr_t, Mapping>;

  bool find_gap(std::uintptr_t from, std::size_t bytes, std::uintptr_t& address) const;
  Answer reserve_locked(std::size_t bytes, std::uintptr_t& address);
  Answer create_locked(std::size_t bytes, Handle& handle);
  void drop_if_unused(Handle handle, Freed& freed);
  bool open_row(Mappings::iterator& mapping, std::uintptr_t end);
  Mappings::const_iterator mapping_of(std::uintptr_t address) const;
  std::byte* backing(std::uintptr_t address) const noexcept;

  std::size_t range_bytes_ = 0;
  std::uintptr_t base_ = 0, alias_ = 0;  // constant
  int file_ = -1;
  std::atomic<std::size_t> capacity_ = std::size_t{4} << 30, used_ = 0;

  mutable std::mutex mutex_;  // guards everything below
  std::map<std::uintptr_t, std::size_t> reserved_;
  Mappings mappings_;
  std::map<Handle, Physical> memory_;
  std::map<std::uintptr_t, Plain> plain_;
  Handle last_handle_ = 0;
  std::uint64_t file_end_ = 0;
  std::uintptr_t cursor_ = 0;
};

AddressSpace& address_space();

// Device memory that the driver or a library takes for itself, in whole pages.
class OwnMemory {
 public:
  OwnMemory() = default;
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;
  ~OwnMemory() {
    if (handle_ != 0) address_space().release(handle_);
  }
  // Whether there was room. Called once.
  bool take(std::size_t bytes) {
    const std::size_t page = AddressSpace::granularity();
    return address_space().create((bytes + page - 1) / page * page, handle_) ==
           AddressSpace::Answer::ok;
  }

 private:
  AddressSpace::Handle handle_ = 0;
};

}  // namespace ebb::emulated
