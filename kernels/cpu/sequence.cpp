#include "ebb/core/kernels/sequence.h"

#include <cstring>

#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/width.h"

namespace ebb::cpu {

Status reverse_sequence(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const Sequences all(in.spec);
  if (out.elements() == 0) return {};
  const int missing = missing_byte(in.spec.dtype);
  const auto* lengths = context.inputs[1].as<const std::int64_t>();
  const auto* from = in.as<const std::byte>();
  auto* to = out.as<std::byte>();
  with_width(all.bytes, [&](auto width) {
    const auto bytes = static_cast<std::size_t>(width > 0 ? width : all.bytes);
    for_items(all.batch * all.time, rows_per_piece(all.bytes / 4), [&](std::int64_t i) {
      const std::int64_t row = i / all.time, t = i % all.time, length = lengths[row];
      const std::int64_t at = t < length ? length - 1 - t : t;
      if (length >= 0 && length <= all.time)
        std::memcpy(to + i * all.bytes, from + (row * all.time + at) * all.bytes, bytes);
      else
        std::memset(to + i * all.bytes, missing, bytes);
    });
  });
  return {};
}

}  // namespace ebb::cpu
