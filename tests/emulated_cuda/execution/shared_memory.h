// Fills shared memory with garbage when a block begins.
#pragma once
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ebb::emulated {

// __shared__ is thread-local storage of the executing thread, which holds nothing else that this
// thread needs. The parts that a kernel uses are found by observing its changes.
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
  bool looks_ = false;  // observes the block's changes
  std::unordered_map<const void*, Use> uses_;
};

}  // namespace ebb::emulated
