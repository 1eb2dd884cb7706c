// Page-locked host memory. Only copies from and to such memory are done late.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>

namespace ebb::emulated {

// Used under the machine's lock.
class HostMemory {
 public:
  // Returns memory full of garbage, between pages that cannot be touched. Null if there is none
  // left.
  void* allocate(std::size_t bytes);
  bool free(void* address);
  bool is_pinned(const void* address, std::size_t bytes) const;
  std::size_t blocks() const { return blocks_.size(); }

 private:
  struct Block {
    std::size_t bytes = 0;
    void* mapped = nullptr;
    std::size_t mapped_bytes = 0;
  };
  std::map<std::uintptr_t, Block> blocks_;
};

HostMemory& host_memory();

}  // namespace ebb::emulated
