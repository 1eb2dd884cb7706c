// Plans the sorting of rows: a function of the shape alone, shared by the kernel and its memory
// rule.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ebb::cuda {

// Number of elements that a block sorts.
inline constexpr int kSortTile = 1024;
// Rows that are not sorted by tiles are sorted by radix, as many together as have so many elements.
inline constexpr std::int64_t kSortedTogether = 1 << 22;

// An upper bound of CUB's workspace: 1 KiB for every tile, of at least 4096 pairs, up to 2^28
// pairs, and for each 8 bits of keys and 2^27 pairs. cub_sort_wants() is what it asks for on the
// current device, 0 where it fails.
constexpr std::size_t cub_sort_bytes(std::int64_t pairs) noexcept {
  const std::int64_t tiled = std::min(pairs, std::int64_t{1} << 28);
  return static_cast<std::size_t>(tiled / 4 + ((pairs >> 27) + 1) * 8192);
}
std::size_t cub_sort_wants(std::int64_t pairs) noexcept;

// Finds the first `count` of `size` elements, in order, in each row.
struct SortPlan {
  std::int64_t rows, size, count;

  // Rows of one tile. Of longer rows a few elements, which are among the first of their tiles.
  constexpr bool by_tiles() const noexcept { return size <= kSortTile || count <= kSortTile / 8; }
  // Number of indices that tiles keep of `listed` in a row.
  constexpr std::int64_t kept(std::int64_t listed) const noexcept {
    const std::int64_t whole = listed / kSortTile;
    return whole * count + std::min(count, listed - whole * kSortTile);
  }
  constexpr std::int64_t rows_together() const noexcept {
    return std::clamp<std::int64_t>(kSortedTogether / size, 1, rows);
  }
  constexpr std::int64_t pairs() const noexcept { return rows_together() * size; }
  // Arrays of a radix sort, two of elements and two of words of keys. The output has room for the
  // words if it takes all elements.
  constexpr int arrays() const noexcept { return count == size ? 2 : 4; }
  constexpr std::size_t workspace_bytes() const noexcept {
    std::int64_t lists = 0;
    if (by_tiles()) {
      for (std::int64_t listed = size; listed > kSortTile; lists += listed) listed = kept(listed);
      return static_cast<std::size_t>(rows * lists) * sizeof(std::int64_t);
    }
    return static_cast<std::size_t>(arrays() * pairs()) * sizeof(std::uint32_t) +
           cub_sort_bytes(pairs());
  }
};

}  // namespace ebb::cuda
