// Host memory that is locked to its pages: copies of it happen late, others do not.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace ebb::emulated {

class HostMemory {
 public:
  // With pages around it that cannot be touched, full of garbage; null where there is none.
  void* allocate(std::size_t bytes);
  bool free(void* address);
  bool is_pinned(const void* address, std::size_t bytes) const;
  std::size_t blocks() const;

 private:
  struct Block {
    std::size_t bytes = 0;
    void* mapped = nullptr;
    std::size_t mapped_bytes = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, Block> blocks_;
};

HostMemory& host_memory();

}  // namespace ebb::emulated
