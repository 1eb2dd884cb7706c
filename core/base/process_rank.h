#pragma once
#include <atomic>

namespace ebb::detail {

// This process's number in its job, from 0; 0 alone. Set before any other rank is heard of. Keys of
// random numbers depend on it, so that no two ranks draw the same.
inline std::atomic<int>& process_rank() noexcept {
  static constinit std::atomic<int> rank{0};
  return rank;
}

}  // namespace ebb::detail
