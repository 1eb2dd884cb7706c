#pragma once
#include <algorithm>
#include <cstdint>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/merged_axes.h"
#include "ebb/kernels/cpu/pieces.h"

namespace ebb::cpu {

// Goes through the results of a reduction, over all threads. Where the innermost axes are reduced,
// calls row(result, offset of its first element) for each result. Elsewhere calls strip(first
// result, its offset, count) for up to `columns` neighbouring results.
template <class Row, class Strip>
inline void for_results(const MergedAxes& axes, std::int64_t columns, const Row& row,
                        const Strip& strip) {
  if (axes.inner_reduced)
    return for_items(axes.outer_kept, rows_per_piece(axes.inner * axes.outer_reduced),
                     [&](std::int64_t result) { row(result, axes.offset(result, false)); });
  const std::int64_t strips = divide_up(axes.inner, columns);
  const std::int64_t width = std::min(axes.inner, columns);
  for_items(axes.outer_kept * strips, rows_per_piece(axes.outer_reduced * width),
            [&](std::int64_t i) {
              const std::int64_t outer = i / strips, column = i % strips * columns;
              strip(outer * axes.inner + column, axes.offset(outer, false) + column,
                    std::min(columns, axes.inner - column));
            });
}

// The workspace of a reduction that takes all elements in pieces of `size`: a partial result of
// `bytes` each. No other reduction needs any.
inline MemoryNeeds needs_of_pieces(const Shape& shape, std::uint32_t axes, std::int64_t size,
                                   std::size_t bytes) noexcept {
  const MergedAxes merged(shape, axes);
  if (shape.elements() == 0 || !merged.reduces_all()) return {};
  return {.workspace_bytes = static_cast<std::size_t>(divide_up(merged.inner, size)) * bytes};
}

}  // namespace ebb::cpu
