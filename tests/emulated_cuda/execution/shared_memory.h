// Shared memory holds garbage when a block begins.
#pragma once
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ebb::emulated {

// __shared__ is storage of the executing thread, so all kernels' arrays lie together and nothing
// else does that this thread needs. Which of it a kernel uses is seen by what it changes.
class SharedMemory {
 public:
  void begin_launch(const void* kernel);
  void begin_block();
  void end_block();

 private:
  struct Use {
    std::vector<std::pair<std::size_t, std::size_t>> parts;  // begin and end, in bytes
    std::size_t launches = 0;
  };
  void find();

  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  Use* use_ = nullptr;
  bool looks_ = false;  // at what the block changes
  std::unordered_map<const void*, Use> uses_;
};

}  // namespace ebb::emulated
