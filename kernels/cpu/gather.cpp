#include <algorithm>
#include <cstring>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/index.h"
#include "ebb/kernels/cpu/axis_cut.h"
#include "ebb/kernels/cpu/in_float.h"
#include "ebb/kernels/cpu/indices.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/width.h"

namespace ebb::cpu {
Status gather(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &indices = context.inputs[1], &out = context.outputs[0];
  if (out.elements() == 0) return {};
  const auto& attributes = context.attribute<IndexAttributes>();
  const IndexedAxis axis(in.spec.shape, attributes), chosen(out.spec.shape, attributes);
  const auto element = static_cast<std::int64_t>(size_of(in.spec.dtype));
  OutOfRange out_of_range;
  const auto* from = in.as<const std::byte>();
  auto* to = out.as<std::byte>();
  return for_indices(indices, [&](const auto* index) {
    with_width(element, [&](auto width) {
      const auto bytes = static_cast<std::size_t>(width > 0 ? width : element);
      const std::int64_t inner = axis.inner;
      // A row is the elements at one index of the axis.
      for_pieces(axis.outer * chosen.size, rows_per_piece(inner),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end;) {
                     const std::int64_t outer = row / chosen.size;
                     const std::int64_t last = std::min(end, (outer + 1) * chosen.size);
                     const std::byte* const own = from + outer * axis.size * inner * element;
                     for (; row < last; ++row)
                       for (std::int64_t i = 0; i < inner; ++i) {
                         const auto at = static_cast<std::int64_t>(index[row * inner + i]);
                         std::byte* const target = to + (row * inner + i) * element;
                         if (at >= 0 && at < axis.size)
                           std::memcpy(target, own + (at * inner + i) * element, bytes);
                         else
                           out_of_range.note();
                       }
                   }
                 });
    });
    return out_of_range.after({});
  });
}

MemoryNeeds gather_backward_memory(const MemoryQuery& query) {
  return in_float_memory(query, nullptr, reads_all_but<2>);
}

Status gather_backward(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &indices = context.inputs[1], &out = context.outputs[0];
  if (is_half(out.spec.dtype)) return in_float(context, gather_backward, reads_all_but<2>);
  const auto& attributes = context.attribute<IndexAttributes>();
  const IndexedAxis axis(out.spec.shape, attributes), chosen(in.spec.shape, attributes);
  AllInRange added(in.elements());
  if (out.elements() == 0) return added.after({});
  const std::int64_t inner = axis.inner;
  return for_indices(indices, [&](const auto* index) {
    return added.after(for_wide(out.spec.dtype, [&](auto type) {
      using T = decltype(type);
      for_axis_parts(axis, chosen.size,
                     [&](std::int64_t outer, std::int64_t first, std::int64_t last,
                         std::int64_t from, std::int64_t to) {
                       T* const own = out.as<T>() + outer * axis.size * inner;
                       clear_axis_part(axis, own, first, last, from, to);
                       std::int64_t inside = 0;
                       for (std::int64_t k = 0; k < chosen.size; ++k) {
                         const std::int64_t row = (outer * chosen.size + k) * inner;
                         const T* const values = in.as<const T>() + row;
                         for (std::int64_t i = from; i < to; ++i) {
                           const auto at = static_cast<std::int64_t>(index[row + i]);
                           if (at < first || at >= last) continue;
                           own[at * inner + i] += values[i];
                           ++inside;
                         }
                       }
                       added.note(inside);
                     });
    }));
  });
}

}  // namespace ebb::cpu
