// Device memory: addresses that the host cannot touch, and where kernels find the bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "ebb/tests/emulated_cuda/options.h"

namespace ebb::emulated {

// Two address ranges of one size. Device addresses lie in the first, which is never backed. The
// second, a constant distance away, has memory wherever some is mapped: the emulation moves a
// kernel's pointers there when it runs. Reserved ranges never touch, and an address is reserved
// again as late as possible. May be used from any thread.
class AddressSpace {
 public:
  // Of what is created, mapped and reserved.
  static std::size_t granularity() noexcept { return options().page_bytes; }
  enum class Answer { ok, invalid, full, mapped, not_mapped };
  using Handle = unsigned long long;

  AddressSpace();

  // Ranges of addresses. `alignment` 0 is the granularity.
  Answer reserve(std::size_t bytes, std::size_t alignment, std::uintptr_t& address);
  Answer unreserve(std::uintptr_t address, std::size_t bytes);

  // Memory: it stays until it is released and mapped nowhere.
  Answer create(int device, std::size_t bytes, Handle& handle);
  Answer release(Handle handle);
  Answer map(std::uintptr_t address, std::size_t bytes, std::size_t offset, Handle handle);
  Answer unmap(std::uintptr_t address, std::size_t bytes);
  Answer allow_access(std::uintptr_t address, std::size_t bytes, int device);

  // A block with unmapped pages around it, whose end is the end of a page but for what rounding to
  // 256 bytes adds; that is looked at when it is freed: `spoiled` if it was written to.
  Answer allocate(int device, std::size_t bytes, std::uintptr_t& address);
  Answer free(std::uintptr_t address, bool& spoiled);

  bool holds(const void* address) const noexcept;
  // Where a kernel finds it; what is no device address stays what it is.
  void* alias(const void* address) const noexcept;
  // The other way round; null where no device address belongs to it.
  void* device_address(const void* alias) const noexcept;
  // Whether all of it is mapped, and may be used.
  bool is_mapped(const void* address, std::size_t bytes) const;
  // The device whose memory it is, or -1.
  int device_of(const void* address) const;

  std::size_t capacity(int device) const;
  void set_capacity(int device, std::size_t bytes);
  std::size_t used(int device) const;

 private:
  struct Physical {
    std::uint64_t offset = 0;  // in the file
    std::size_t bytes = 0;
    int device = 0;
    int mappings = 0;
    bool released = false;
    bool is_filled = false;  // with garbage, when it was first made accessible
  };
  // What no longer has a user, in the file.
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

  bool find_gap(std::uintptr_t from, std::size_t bytes, std::size_t alignment,
                std::uintptr_t& address) const;
  Answer reserve_locked(std::size_t bytes, std::size_t alignment, std::uintptr_t& address);
  Answer create_locked(int device, std::size_t bytes, Handle& handle);
  void drop_if_unused(Handle handle, Freed& freed);
  bool open_row(Mappings::iterator& mapping, std::uintptr_t end);
  Mappings::const_iterator mapping_of(std::uintptr_t address) const;
  std::byte* backing(std::uintptr_t address) const noexcept;

  std::size_t range_bytes_ = 0;
  std::uintptr_t base_ = 0, alias_ = 0;  // constant
  int file_ = -1;

  mutable std::mutex mutex_;  // of all that follows
  std::map<std::uintptr_t, std::size_t> reserved_;
  Mappings mappings_;
  std::map<Handle, Physical> memory_;
  std::map<std::uintptr_t, Plain> plain_;
  Handle last_handle_ = 0;
  std::uint64_t file_end_ = 0;
  std::uintptr_t cursor_ = 0;
  std::vector<std::size_t> capacity_, used_;
};

AddressSpace& address_space();

}  // namespace ebb::emulated
