// How rows are put into order: a function of the shape alone, which the kernel and its memory rule
// share.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ebb::cuda {

// Elements that a block puts into order in shared memory, and of how many at most it looks for one
// after the other.
inline constexpr int kSortTile = 1024;
inline constexpr std::int64_t kFewSorted = 32;

// The first `count` of `size` elements, of each row.
struct SortPlan {
  std::int64_t rows, size, count;

  // Whether they are looked for: a row is read as often as there are of them.
  constexpr bool selects() const noexcept { return size > kSortTile && count <= kFewSorted; }
  // How often sorted runs are merged, each time two of them, after those of kSortTile.
  constexpr int merges() const noexcept {
    int merges = 0;
    for (std::int64_t run = kSortTile; run < size; run *= 2) ++merges;
    return selects() ? 0 : merges;
  }
  // Arrays of indices beside the output, which has room for one where all are wanted.
  constexpr int arrays() const noexcept {
    const int needed = merges() > 1 ? 2 : merges();
    return needed == 2 && count == size ? 1 : needed;
  }
  constexpr std::size_t workspace_bytes() const noexcept {
    return static_cast<std::size_t>(arrays() * rows * size) * sizeof(std::int64_t);
  }
};

}  // namespace ebb::cuda
