// Cuts elements that are summed by index into work for blocks of threads: a function of the shape
// alone, shared by the kernels and their memory rule.
#pragma once
#include "ebb/core/kernels/index.h"
#include "ebb/kernels/cuda/plans/reduce_plan.h"

namespace ebb::cuda {

// Bytes of a tile's sums in shared memory. A tile is some neighbouring rows of the axis by some
// columns.
inline constexpr int kTileBytes = 32 << 10;

struct ScatterPlan {
  std::int64_t outer, size, inner, chosen;  // of the sums; the number of indices along the axis
  std::int64_t tiles_of_columns, tiles_of_rows, tiles;
  int columns = 1, rows = 0;     // of a tile; columns are a power of two
  std::int64_t parts = 1, part;  // of the indices; a second kernel adds the sums of parts up

  // `state`: bytes of a sum. `cuts`: whether the indices are cut where there are too few tiles to
  // fill a device. The sums of all parts are at most a quarter of the elements that are summed.
  ScatterPlan(const IndexedAxis& axis, std::int64_t indices, std::size_t state, bool cuts) noexcept
      : outer(axis.outer), size(axis.size), inner(axis.inner), chosen(indices), part(indices) {
    const auto divide = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
    while (columns < kRowThreads && columns < inner) columns *= 2;
    tiles_of_columns = divide(inner, columns);
    tiles_of_rows = divide(size, kTileBytes / static_cast<int>(state) / columns);
    tiles = outer * tiles_of_rows * tiles_of_columns;
    if (tiles == 0) return;
    rows = static_cast<int>(divide(size, tiles_of_rows));
    constexpr std::int64_t kBlocks = 512, kLeast = 256;
    const std::int64_t most = std::min(chosen / kLeast, chosen / 4 / size);
    if (!cuts || most < 2 || tiles > kBlocks / 2) return;
    part = divide(chosen, std::min(kBlocks / tiles, most));
    parts = divide(chosen, part);
  }
  constexpr std::int64_t sums() const noexcept { return outer * size * inner; }
};

}  // namespace ebb::cuda
