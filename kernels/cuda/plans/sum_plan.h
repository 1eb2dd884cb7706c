// Work of a sum for blocks of threads. NVRTC reads it too, for chains that end in a sum.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ebb::cuda {

inline constexpr int kRowThreads = 256;  // of a block

// `results` sums of `terms` each.
struct SumPlan {
  std::int64_t results = 1, terms = 1;
  int width = 1;           // sums that a block makes at a time
  bool by_rows = false;    // a sum's threads are neighbours, else neighbours have different sums
  std::int64_t parts = 1;  // of each sum; a second kernel adds them up
  std::int64_t part = 1;   // terms of a part; the last may have fewer

  // Bytes of the parts' sums.
  constexpr std::size_t workspace_bytes() const noexcept {
    return parts == 1 ? 0 : static_cast<std::size_t>(parts * results) * sizeof(double);
  }

  // Turns that blocks take at one part of all sums.
  constexpr std::int64_t turns() const noexcept { return (results + width - 1) / width; }
};

}  // namespace ebb::cuda
