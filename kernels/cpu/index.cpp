#include "ebb/core/kernels/index.h"

#include <algorithm>
#include <cstring>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/axis_cut.h"
#include "ebb/kernels/cpu/in_float.h"
#include "ebb/kernels/cpu/indices.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/width.h"

namespace ebb::cpu {
Status index_select(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &indices = context.inputs[1], &out = context.outputs[0];
  const IndexedAxis axis(in.spec.shape, context.attribute<IndexAttributes>());
  const std::int64_t chosen = indices.elements();
  const std::int64_t part = axis.inner * static_cast<std::int64_t>(size_of(in.spec.dtype));
  if (out.elements() == 0) return {};
  OutOfRange out_of_range;
  const auto* from = in.as<const std::byte>();
  auto* to = out.as<std::byte>();
  return for_indices(indices, [&](const auto* index) {
    with_width(part, [&](auto width) {
      const auto bytes = static_cast<std::size_t>(width > 0 ? width : part);
      for_pieces(axis.outer * chosen, rows_per_piece(part / 4),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end;) {
                     const std::int64_t outer = i / chosen, first = outer * chosen;
                     const std::byte* const own = from + outer * axis.size * part;
                     for (const std::int64_t last = std::min(end, first + chosen); i < last; ++i) {
                       const auto at = static_cast<std::int64_t>(index[i - first]);
                       if (at >= 0 && at < axis.size)
                         std::memcpy(to + i * part, own + at * part, bytes);
                       else
                         out_of_range.note();
                     }
                   }
                 });
    });
    return out_of_range.after({});
  });
}

MemoryNeeds index_select_backward_memory(const MemoryQuery& query) {
  return in_float_memory(query, nullptr, reads_all_but<2>);
}

Status index_select_backward(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &indices = context.inputs[1], &out = context.outputs[0];
  if (is_half(out.spec.dtype)) return in_float(context, index_select_backward, reads_all_but<2>);
  const IndexedAxis axis(out.spec.shape, context.attribute<IndexAttributes>());
  const std::int64_t chosen = indices.elements(), inner = axis.inner;
  AllInRange added(in.elements());
  if (out.elements() == 0) return added.after({});
  return for_indices(indices, [&](const auto* index) {
    return added.after(for_wide(out.spec.dtype, [&](auto type) {
      using T = decltype(type);
      for_axis_parts(axis, chosen,
                     [&](std::int64_t outer, std::int64_t first, std::int64_t last,
                         std::int64_t from, std::int64_t to) {
                       T* const own = out.as<T>() + outer * axis.size * inner;
                       clear_axis_part(axis, own, first, last, from, to);
                       const T* const parts = in.as<const T>() + outer * chosen * inner;
                       std::int64_t inside = 0;
                       for (std::int64_t k = 0; k < chosen; ++k) {
                         const auto at = static_cast<std::int64_t>(index[k]);
                         if (at < first || at >= last) continue;
                         ++inside;
                         const T* const part = parts + k * inner;
                         for (std::int64_t i = from; i < to; ++i) own[at * inner + i] += part[i];
                       }
                       added.note(inside * (to - from));
                     });
    }));
  });
}

Status one_hot(const KernelContext& context) {
  const Buffer &indices = context.inputs[0], &out = context.outputs[0];
  const std::int64_t rows = indices.elements();
  if (out.elements() == 0) return {};
  const std::int64_t classes = out.elements() / rows;
  return for_indices(indices, [&](const auto* index) {
    return for_floating(out.spec.dtype, [&](auto type) {
      using T = decltype(type);
      T* to = out.as<T>();
      for_pieces(rows, rows_per_piece(classes), [&](std::int64_t begin, std::int64_t end) {
        std::fill(to + begin * classes, to + end * classes, T(0.f));
        for (std::int64_t row = begin; row < end; ++row)
          if (const auto at = static_cast<std::int64_t>(index[row]); at >= 0 && at < classes)
            to[row * classes + at] = T(1.f);
      });
    });
  });
}

}  // namespace ebb::cpu
