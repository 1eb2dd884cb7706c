#include "ebb/tests/emulated_cuda/memory/address_space.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ebb/tests/emulated_cuda/execution/sanitizers.h"
#include "ebb/tests/emulated_cuda/memory/page.h"
#include "ebb/tests/emulated_cuda/options.h"

namespace ebb::emulated {
namespace {

constexpr std::size_t kMostRangeBytes = std::size_t{sanitizers::kThread ? 128 : 1024} << 30;
constexpr std::size_t kLeastRangeBytes = std::size_t{32} << 30;
constexpr std::size_t kRounding = 256;
constexpr int kGarbage = 0xFF;

constexpr std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}
void* pointer(std::uintptr_t address) noexcept { return reinterpret_cast<void*>(address); }
std::uintptr_t number(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}
std::uintptr_t map_nothing(std::uintptr_t at, std::size_t bytes) noexcept {
  void* const base =
      ::mmap(pointer(at), bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);
  return base == MAP_FAILED ? 0 : number(base);
}

}  // namespace

AddressSpace& address_space() {
  static auto* const space = new AddressSpace;  // threads may use it until the process is gone
  return *space;
}

AddressSpace::AddressSpace() {
  for (range_bytes_ = kMostRangeBytes; range_bytes_ >= kLeastRangeBytes; range_bytes_ /= 2) {
    base_ = map_nothing(0, 2 * range_bytes_);
    if (base_) break;
  }
  // A multiple of 4 GiB. KernelWork moves every word of a kernel's arguments that looks like a
  // device address. Such a word may be a 4-byte value beside padding with stale bytes; moving it by
  // this distance leaves the value unchanged.
  alias_ = base_ + range_bytes_;
  file_ = ::memfd_create("emulated device memory", MFD_CLOEXEC);
  if (!base_ || file_ < 0 || ::ftruncate(file_, off_t{1} << 46) != 0) {
    std::fputs("emulated CUDA: no address space, or no memory file\n", stderr);
    std::abort();
  }
  cursor_ = round_up(base_ + 1, granularity());
}

// Leaves at least one unreserved granule on either side.
bool AddressSpace::find_gap(std::uintptr_t from, std::size_t bytes, std::uintptr_t& address) const {
  for (auto next = reserved_.lower_bound(from);; ++next) {
    const std::uintptr_t end = next == reserved_.end() ? base_ + range_bytes_ : next->first;
    const std::uintptr_t begin = round_up(from, granularity());
    if (end > begin && end - begin >= bytes + granularity()) {
      address = begin;
      return true;
    }
    if (next == reserved_.end()) return false;
    from = next->first + next->second + granularity();
  }
}

AddressSpace::Answer AddressSpace::reserve_locked(std::size_t bytes, std::uintptr_t& address) {
  if (!find_gap(cursor_, bytes, address) && !find_gap(base_ + 1, bytes, address))
    return Answer::full;
  reserved_.emplace(address, bytes);
  cursor_ = address + bytes + granularity();
  return Answer::ok;
}

AddressSpace::Answer AddressSpace::reserve(std::size_t bytes, std::uintptr_t& address) {
  if (bytes == 0 || bytes % granularity() != 0) return Answer::invalid;
  const std::lock_guard lock(mutex_);
  return bytes > range_bytes_ ? Answer::full : reserve_locked(bytes, address);
}

AddressSpace::Answer AddressSpace::unreserve(std::uintptr_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto range = reserved_.find(address);
  if (range == reserved_.end() || range->second != bytes) return Answer::invalid;
  const auto inside = mappings_.lower_bound(address);
  if (inside != mappings_.end() && inside->first < address + bytes) return Answer::mapped;
  reserved_.erase(range);
  return Answer::ok;
}

AddressSpace::Answer AddressSpace::create_locked(std::size_t bytes, Handle& handle) {
  if (bytes > capacity_ || used_ > capacity_ - bytes) return Answer::full;
  used_ += bytes;
  handle = ++last_handle_;
  memory_.emplace(handle, Physical{file_end_, bytes});
  file_end_ += bytes % granularity() == 0 ? bytes : round_up(bytes, kPage);
  return Answer::ok;
}

AddressSpace::Answer AddressSpace::create(std::size_t bytes, Handle& handle) {
  if (bytes == 0 || bytes % granularity() != 0) return Answer::invalid;
  const std::lock_guard lock(mutex_);
  return create_locked(bytes, handle);
}

// Memory to give back to the host. Joins neighbouring pieces, since a system call for each page
// takes long.
class AddressSpace::Freed {
 public:
  explicit Freed(int file) noexcept : file_(file) {}
  ~Freed() { give_back(); }
  Freed(const Freed&) = delete;
  Freed& operator=(const Freed&) = delete;

  void add(std::uint64_t offset, std::size_t bytes) noexcept {
    if (offset != offset_ + bytes_) {
      give_back();
      offset_ = offset;
    }
    bytes_ += bytes;
  }

 private:
  void give_back() noexcept {
    if (bytes_ > 0)
      ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset_),
                  static_cast<off_t>(bytes_));
    bytes_ = 0;
  }

  const int file_;
  std::uint64_t offset_ = 0;
  std::size_t bytes_ = 0;
};

void AddressSpace::drop_if_unused(Handle handle, Freed& freed) {
  const auto found = memory_.find(handle);
  const Physical& physical = found->second;
  if (!physical.released || physical.mappings > 0) return;
  freed.add(physical.offset, physical.bytes);
  used_ -= physical.bytes;
  memory_.erase(found);
}

AddressSpace::Answer AddressSpace::release(Handle handle) {
  const std::lock_guard lock(mutex_);
  const auto found = memory_.find(handle);
  if (found == memory_.end() || found->second.released) return Answer::invalid;
  found->second.released = true;
  Freed freed(file_);
  drop_if_unused(handle, freed);
  return Answer::ok;
}

AddressSpace::Answer AddressSpace::map(std::uintptr_t address, std::size_t bytes,
                                       std::size_t offset, Handle handle) {
  const std::lock_guard lock(mutex_);
  const auto memory = memory_.find(handle);
  if (memory == memory_.end() || memory->second.released || bytes == 0 || offset != 0 ||
      bytes != memory->second.bytes || address % granularity() != 0)
    return Answer::invalid;
  auto range = reserved_.upper_bound(address);
  if (range == reserved_.begin()) return Answer::invalid;
  --range;
  if (address + bytes > range->first + range->second) return Answer::invalid;
  const auto after = mappings_.lower_bound(address);
  if (after != mappings_.end() && after->first < address + bytes) return Answer::mapped;
  if (mapping_of(address) != mappings_.end()) return Answer::mapped;
  mappings_.emplace(address, Mapping{bytes, handle, false});
  ++memory->second.mappings;
  return Answer::ok;
}

AddressSpace::Answer AddressSpace::unmap(std::uintptr_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  // Only whole mappings that lie side by side can be unmapped.
  std::uintptr_t at = address;
  const auto first = mappings_.find(address);
  auto end = first;
  for (; end != mappings_.end() && end->first == at && at < address + bytes; ++end)
    at += end->second.bytes;
  if (bytes == 0 || at != address + bytes) return Answer::not_mapped;
  map_nothing(number(backing(address)), bytes);
  Freed freed(file_);
  for (auto mapping = first; mapping != end; ++mapping) {
    --memory_.at(mapping->second.handle).mappings;
    drop_if_unused(mapping->second.handle, freed);
  }
  mappings_.erase(first, end);
  return Answer::ok;
}

AddressSpace::Answer AddressSpace::allow_access(std::uintptr_t address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  std::uintptr_t end = address;
  for (auto mapping = mappings_.find(address); end < address + bytes; ++mapping) {
    if (mapping == mappings_.end() || mapping->first != end) return Answer::not_mapped;
    end += mapping->second.bytes;
  }
  if (end != address + bytes) return Answer::not_mapped;
  for (auto mapping = mappings_.find(address); mapping != mappings_.end() && mapping->first < end;)
    if (!open_row(mapping, end)) return Answer::full;
  return Answer::ok;
}

// Makes mappings accessible, from `mapping` on, as long as they lie side by side in the file too.
// They become one mapping of the host.
bool AddressSpace::open_row(Mappings::iterator& mapping, std::uintptr_t end) {
  const std::uintptr_t begin = mapping->first;
  const bool accessible = mapping->second.accessible;
  const Physical& first = memory_.at(mapping->second.handle);
  const std::uint64_t offset = first.offset;
  const bool filled = first.is_filled;
  std::size_t bytes = 0;
  for (; mapping != mappings_.end() && mapping->first == begin + bytes && begin + bytes < end;
       ++mapping) {
    Physical& physical = memory_.at(mapping->second.handle);
    if (physical.offset != offset + bytes || physical.is_filled != filled ||
        mapping->second.accessible != accessible)
      break;
    bytes += mapping->second.bytes;
    mapping->second.accessible = physical.is_filled = true;
  }
  if (!accessible && ::mmap(backing(begin), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                            file_, static_cast<off_t>(offset)) == MAP_FAILED)
    return false;
  if (!filled) std::memset(backing(begin), kGarbage, std::min(bytes, kFilledBytes));
  return true;
}

AddressSpace::Answer AddressSpace::allocate(std::size_t bytes, std::uintptr_t& address) {
  const std::size_t rounded = round_up(std::max<std::size_t>(bytes, 1), kRounding);
  Plain block;
  block.bytes = bytes;
  block.range_bytes = round_up(rounded, kPage);
  {
    const std::lock_guard lock(mutex_);
    if (block.range_bytes < bytes) return Answer::full;
    const Answer created = create_locked(block.range_bytes, block.handle);
    if (created != Answer::ok) return created;
    memory_.at(block.handle).mappings = 1;
    if (reserve_locked(block.range_bytes, block.range) != Answer::ok) {
      memory_.at(block.handle) = {memory_.at(block.handle).offset, block.range_bytes, 0, true};
      Freed freed(file_);
      drop_if_unused(block.handle, freed);
      return Answer::full;
    }
    mappings_.emplace(block.range, Mapping{block.range_bytes, block.handle, false});
    address = block.range + block.range_bytes - rounded;
    plain_.emplace(address, block);
  }
  const Answer allowed = allow_access(block.range, block.range_bytes);
  if (allowed == Answer::ok) {
    std::byte* const end = backing(address) + bytes;
    std::memset(end, kGarbage, rounded - bytes);
    sanitizers::forbid(end, rounded - bytes);
  }
  return allowed;
}

AddressSpace::Answer AddressSpace::free(std::uintptr_t address, bool& spoiled) {
  Plain block;
  {
    const std::lock_guard lock(mutex_);
    const auto found = plain_.find(address);
    if (found == plain_.end()) return Answer::invalid;
    block = found->second;
    plain_.erase(found);
  }
  const std::byte* const end = backing(block.range + block.range_bytes);
  const std::byte* at = backing(address) + block.bytes;
  sanitizers::allow(backing(block.range), block.range_bytes);
  spoiled = std::any_of(at, end, [](std::byte b) { return b != static_cast<std::byte>(kGarbage); });
  unmap(block.range, block.range_bytes);
  release(block.handle);
  return unreserve(block.range, block.range_bytes);
}

bool AddressSpace::holds(const void* address) const noexcept {
  return number(address) - base_ < range_bytes_;
}

void* AddressSpace::alias(const void* address) const noexcept {
  return holds(address) ? backing(number(address)) : const_cast<void*>(address);
}

void* AddressSpace::device_address(const void* alias) const noexcept {
  const std::uintptr_t offset = number(alias) - alias_;
  return offset < range_bytes_ ? pointer(base_ + offset) : nullptr;
}

std::byte* AddressSpace::backing(std::uintptr_t address) const noexcept {
  return static_cast<std::byte*>(pointer(address - base_ + alias_));
}

AddressSpace::Mappings::const_iterator AddressSpace::mapping_of(std::uintptr_t address) const {
  auto mapping = mappings_.upper_bound(address);
  if (mapping == mappings_.begin()) return mappings_.end();
  --mapping;
  return address < mapping->first + mapping->second.bytes ? mapping : mappings_.end();
}

bool AddressSpace::is_mapped(const void* address, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  std::uintptr_t at = number(address);
  if (const auto plain = plain_.upper_bound(at); plain != plain_.begin()) {
    const auto& [begin, block] = *std::prev(plain);
    if (at < block.range + block.range_bytes) return at + bytes <= begin + block.bytes;
  }
  const std::uintptr_t end = at + bytes;
  auto mapping = mapping_of(at);
  while (mapping != mappings_.end() && mapping->second.accessible && mapping->first <= at) {
    at = mapping->first + mapping->second.bytes;
    if (at >= end) return true;
    ++mapping;
  }
  return false;
}

}  // namespace ebb::emulated
