#pragma once
#include <algorithm>

#include "ebb/core/kernels/index.h"
#include "ebb/core/kernels/workers.h"
#include "ebb/kernels/cpu/pieces.h"

namespace ebb::cpu {

// Calls body(outer, first, last, from, to) for parts that cover [outer, size, inner]: rows
// [first, last) of the axis, columns [from, to). Each part looks through all indices for its own
// rows, so there are no more parts than threads. The axis is cut only where columns do not
// suffice. An element is summed in one part, in the order of the indices, whatever the cut.
// `chosen`: indices per outer position.
template <class Body>
inline void for_axis_parts(const IndexedAxis& axis, std::int64_t chosen, const Body& body) {
  constexpr std::int64_t line = 16;  // columns, of a part at least
  const std::int64_t work = (axis.size + chosen) * axis.inner;
  const std::int64_t parts =
      std::min(divide_up(work, kPieceElements),
               divide_up(Workers::instance().threads(), std::max<std::int64_t>(1, axis.outer)));
  if (parts <= 1)
    return for_items(axis.outer, rows_per_piece(work), [&](std::int64_t outer) {
      body(outer, std::int64_t{0}, axis.size, std::int64_t{0}, axis.inner);
    });
  const bool by_columns = divide_up(axis.inner, line) >= parts;
  const std::int64_t whole = by_columns ? axis.inner : axis.size;
  const std::int64_t each =
      by_columns ? round_up(divide_up(whole, parts), line) : divide_up(whole, parts);
  const std::int64_t pieces = divide_up(whole, each);
  for_pieces(axis.outer * pieces, 1, [&](std::int64_t piece, std::int64_t) {
    const std::int64_t begin = piece % pieces * each, end = std::min(begin + each, whole);
    if (by_columns)
      body(piece / pieces, std::int64_t{0}, axis.size, begin, end);
    else
      body(piece / pieces, begin, end, std::int64_t{0}, axis.inner);
  });
}

// Writes zeros into such a part.
template <class T>
inline void clear_axis_part(const IndexedAxis& axis, T* own, std::int64_t first, std::int64_t last,
                            std::int64_t from, std::int64_t to) {
  if (to - from == axis.inner) {
    std::fill(own + first * axis.inner, own + last * axis.inner, T{});
    return;
  }
  for (std::int64_t row = first; row < last; ++row)
    std::fill(own + row * axis.inner + from, own + row * axis.inner + to, T{});
}

}  // namespace ebb::cpu
