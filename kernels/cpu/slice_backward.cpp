#include <cstring>

#include "ebb/core/kernels/slice.h"
#include "ebb/kernels/cpu/pieces.h"

namespace ebb::cpu {

Status slice_backward(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const std::int64_t rows = out.spec.shape[0];
  const auto& slice = context.attribute<SliceAttributes>();
  const std::int64_t first = slice.first(rows), last = slice.last(rows);
  if (out.elements() == 0) return {};
  const auto row_bytes = static_cast<std::int64_t>(out.spec.bytes()) / rows;
  const auto* from = in.as<const std::byte>();
  auto* to = out.as<std::byte>();
  for_pieces(rows, rows_per_piece(row_bytes / 4), [=](std::int64_t begin, std::int64_t end) {
    const auto bytes = [=](std::int64_t count) {
      return static_cast<std::size_t>(count * row_bytes);
    };
    // The rows of this piece before, in and after the slice.
    const std::int64_t start = std::clamp(first, begin, end);
    const std::int64_t stop = std::clamp(last, begin, end);
    if (begin < start) std::memset(to + begin * row_bytes, 0, bytes(start - begin));
    if (start < stop)
      std::memcpy(to + start * row_bytes, from + (start - first) * row_bytes, bytes(stop - start));
    if (stop < end) std::memset(to + stop * row_bytes, 0, bytes(end - stop));
  });
  return {};
}

}  // namespace ebb::cpu
