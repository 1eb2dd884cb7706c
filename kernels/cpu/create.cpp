#include "ebb/core/kernels/create.h"

#include <cstring>

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/pieces.h"

namespace ebb::cpu {

Status sequence(const KernelContext& context) {
  const auto& told = context.attribute<SequenceAttributes>();
  const Buffer& out = context.outputs[0];
  const std::int64_t count = out.elements();
  const auto run = [&]<class T>(T) {
    T* const to = out.as<T>();
    for_pieces(count, kPieceElements, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        to[i] = convert<T>(std::fma(static_cast<double>(i), told.step, told.start));
    });
    if (told.has_last != 0 && count > 0) to[count - 1] = convert<T>(told.last);
  };
  return is_floating(out.spec.dtype) ? for_floating(out.spec.dtype, run)
                                     : for_integer(out.spec.dtype, run);
}

Status eye(const KernelContext& context) {
  const auto& told = context.attribute<EyeAttributes>();
  const Buffer& out = context.outputs[0];
  const std::size_t size = size_of(out.spec.dtype);
  const std::uint64_t one = element_of(out.spec.dtype, 1);
  const std::int64_t columns = told.columns;
  const std::int64_t diagonal = near_diagonal(told.diagonal, told.rows, columns);
  if (out.elements() == 0) return {};
  for_items(told.rows, rows_per_piece(columns), [&](std::int64_t row) {
    const std::size_t bytes = static_cast<std::size_t>(columns) * size;
    std::byte* to = out.as<std::byte>() + static_cast<std::size_t>(row) * bytes;
    std::memset(to, 0, bytes);
    const std::int64_t column = row + diagonal;
    if (column >= 0 && column < columns)
      std::memcpy(to + static_cast<std::size_t>(column) * size, &one, size);
  });
  return {};
}

Status triangular(const KernelContext& context) {
  const auto& told = context.attribute<TriangularAttributes>();
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const std::int64_t rows = out.spec.shape.dim(-2), columns = out.spec.shape.dim(-1);
  const std::int64_t diagonal = near_diagonal(told.diagonal, rows, columns);
  const auto size = static_cast<std::int64_t>(size_of(out.spec.dtype));
  const std::int64_t count = out.elements();
  if (count == 0) return {};
  for_items(count / columns, rows_per_piece(columns), [&](std::int64_t row) {
    // Columns before `first` are on one side, the others on the other.
    const std::int64_t edge = row % rows + diagonal + (told.upper != 0 ? 0 : 1);
    const std::int64_t first = std::clamp<std::int64_t>(edge, 0, columns);
    const std::byte* from = in.as<const std::byte>() + row * columns * size;
    std::byte* to = out.as<std::byte>() + row * columns * size;
    const auto below = static_cast<std::size_t>(first * size),
               above = static_cast<std::size_t>((columns - first) * size);
    if (told.upper != 0) {
      std::memset(to, 0, below);
      if (to != from) std::memcpy(to + below, from + below, above);
    } else {
      if (to != from) std::memcpy(to, from, below);
      std::memset(to + below, 0, above);
    }
  });
  return {};
}

}  // namespace ebb::cpu
