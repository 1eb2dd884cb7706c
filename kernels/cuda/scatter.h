// Sums of elements by an index, in the order of the indices. Shared by index_select_backward and
// gather_backward.
#pragma once
#include "ebb/core/kernels/index.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/launch.h"

namespace ebb::cuda {

// Bytes of a tile's sums in shared memory. A tile is some neighbouring rows of the axis by some
// columns. A block's threads form groups of `columns` threads; each row of the tile belongs to one
// group.
inline constexpr int kTileBytes = 32 << 10;

template <class T, class L>
struct Scatter {
  const T* in;
  const L* indices;
  T* out;
  IndexedAxis axis;
  std::int64_t chosen;
  std::int64_t tiles_of_columns, tiles_of_rows, tiles;
  int columns;  // of a tile, a power of two
  int rows;

  // count: number of indices along the axis.
  Scatter(const KernelContext& context, const L* index, std::int64_t count) noexcept
      : in(context.inputs[0].as<const T>()),
        indices(index),
        out(context.outputs[0].as<T>()),
        axis(context.outputs[0].spec.shape, context.attribute<IndexAttributes>()),
        chosen(count),
        columns(1) {
    while (columns < kThreads && columns < axis.inner) columns *= 2;
    rows = kTileBytes / static_cast<int>(sizeof(Accumulate<T>)) / columns;
    tiles_of_columns = divide_up(axis.inner, columns);
    tiles_of_rows = divide_up(axis.size, rows);
    tiles = axis.outer * tiles_of_rows * tiles_of_columns;
  }
};

}  // namespace ebb::cuda
