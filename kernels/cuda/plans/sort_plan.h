// Plans the sorting of rows: a function of the shape alone, shared by the kernel and its memory
// rule.
#pragma once
#include <cstddef>
#include <cstdint>

namespace ebb::cuda {

// Number of elements that a block sorts in shared memory, and the most elements that it selects one
// by one instead of sorting.
inline constexpr int kSortTile = 1024;
inline constexpr std::int64_t kFewSorted = 32;

// Finds the first `count` of `size` elements, in order, in each row.
struct SortPlan {
  std::int64_t rows, size, count;

  // Whether elements are selected one by one, each with a sweep over the row.
  constexpr bool selects() const noexcept { return size > kSortTile && count <= kFewSorted; }
  // Number of sweeps that merge pairs of sorted runs, starting with runs of kSortTile.
  constexpr int merges() const noexcept {
    int merges = 0;
    for (std::int64_t run = kSortTile; run < size; run *= 2) ++merges;
    return selects() ? 0 : merges;
  }
  // Number of index arrays beside the output, which serves as one of them where all elements are
  // wanted.
  constexpr int arrays() const noexcept {
    const int needed = merges() > 1 ? 2 : merges();
    return needed == 2 && count == size ? 1 : needed;
  }
  constexpr std::size_t workspace_bytes() const noexcept {
    return static_cast<std::size_t>(arrays() * rows * size) * sizeof(std::int64_t);
  }
};

}  // namespace ebb::cuda
