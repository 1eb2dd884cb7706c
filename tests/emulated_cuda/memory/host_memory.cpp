#include "ebb/tests/emulated_cuda/memory/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "ebb/tests/emulated_cuda/memory/page.h"

namespace ebb::emulated {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

HostMemory& host_memory() {
  static auto* const memory = new HostMemory;
  return *memory;
}

void* HostMemory::allocate(std::size_t bytes) {
  Block block;
  block.bytes = bytes;
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::size_t inside = (rounded + kPage - 1) / kPage * kPage;
  block.mapped_bytes = inside + 2 * kPage;
  block.mapped = ::mmap(nullptr, block.mapped_bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block.mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(block.mapped) + kPage;
  if (::mprotect(begin, inside, PROT_READ | PROT_WRITE) != 0) {
    ::munmap(block.mapped, block.mapped_bytes);
    return nullptr;
  }
  std::byte* const address = begin + inside - rounded;
  std::memset(address, 0xFF, std::min(bytes, kFilledBytes));
  blocks_.emplace(reinterpret_cast<std::uintptr_t>(address), block);
  return address;
}

bool HostMemory::free(void* address) {
  const auto found = blocks_.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == blocks_.end()) return false;
  ::munmap(found->second.mapped, found->second.mapped_bytes);
  blocks_.erase(found);
  return true;
}

bool HostMemory::is_pinned(const void* address, std::size_t bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto block = blocks_.upper_bound(at);
  if (block == blocks_.begin()) return false;
  --block;
  return at + bytes <= block->first + block->second.bytes;
}

}  // namespace ebb::emulated
