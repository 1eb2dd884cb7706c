// Assigns threads to rows: a function of the shape alone, shared by kernels and their memory rules.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ebb::cuda {

inline constexpr int kRowThreads = 256;  // of a block

// Number of threads that share a row: a power of two up to a warp; 0: a whole block.
constexpr int threads_of_row(std::int64_t elements) noexcept {
  if (elements > 1024) return 0;
  int threads = 1;
  while (threads < 32 && threads * 4 < elements) threads *= 2;
  return threads;
}

// Number of rows that a block works on at a time, with `threads` threads each.
constexpr int rows_of_block(int threads) noexcept {
  return threads == 0 ? 1 : kRowThreads / threads;
}

// The mean of one number per row, for `rows` rows of `elements`: each block adds up its rows'
// numbers.
struct RowMeanPlan {
  int threads;          // of a row
  std::int64_t blocks;  // if more than one, a second kernel adds their sums

  constexpr RowMeanPlan(std::int64_t rows, std::int64_t elements) noexcept
      : threads(threads_of_row(elements)) {
    constexpr std::int64_t kAlone = 4, kMost = 1024;  // turns of a lone block; blocks
    const int at_once = rows_of_block(threads);
    const std::int64_t turns = (rows + at_once - 1) / at_once;
    blocks = turns <= kAlone ? 1 : std::min(turns, kMost);
  }
  constexpr std::size_t workspace_bytes() const noexcept {
    return blocks == 1 ? 0 : static_cast<std::size_t>(blocks) * sizeof(double);
  }
};

}  // namespace ebb::cuda
