#include "ebb/core/kernels/index.h"

#include <cstring>

#include "ebb/kernels/cpu/dispatch.h"
#include "ebb/kernels/cpu/in_float.h"
#include "ebb/kernels/cpu/indices.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/width.h"

namespace ebb::cpu {
namespace {

// The values that index_select_backward reads: all but those of the last input.
bool reads_values(std::size_t input, const IndexSet&) { return input != 2; }

}  // namespace

Status index_select(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &indices = context.inputs[1], &out = context.outputs[0];
  const auto& attributes = context.attribute<IndexAttributes>();
  const IndexedAxis axis(in.spec.shape, attributes);
  const std::int64_t chosen = indices.elements();
  const std::int64_t part = axis.inner * static_cast<std::int64_t>(size_of(in.spec.dtype));
  if (out.elements() == 0) return {};
  const int missing = missing_byte(in.spec.dtype, attributes);
  const auto* from = in.as<const std::byte>();
  auto* to = out.as<std::byte>();
  return for_indices(indices, [&](const auto* index) {
    with_width(part, [&](auto width) {
      const auto bytes = static_cast<std::size_t>(width > 0 ? width : part);
      for_pieces(
          axis.outer * chosen, rows_per_piece(part / 4), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
              const auto at = static_cast<std::int64_t>(index[i % chosen]);
              if (at >= 0 && at < axis.size)
                std::memcpy(to + i * part, from + (i / chosen * axis.size + at) * part, bytes);
              else
                std::memset(to + i * part, missing, bytes);
            }
          });
    });
    return Status{};
  });
}

MemoryNeeds index_select_backward_memory(const MemoryQuery& query) {
  return is_half(query.outputs[0].dtype) ? in_float_memory(query, nullptr, reads_values)
                                         : MemoryNeeds();
}

// A piece is some of the rows of the axis, which look at all indices for their own.
Status index_select_backward(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &indices = context.inputs[1], &out = context.outputs[0];
  if (is_half(out.spec.dtype)) return in_float(context, index_select_backward, reads_values);
  const IndexedAxis axis(out.spec.shape, context.attribute<IndexAttributes>());
  const std::int64_t chosen = indices.elements(), inner = axis.inner;
  if (out.elements() == 0) return {};
  const std::int64_t rows = rows_per_piece(inner), pieces = divide_up(axis.size, rows);
  return for_indices(indices, [&](const auto* index) {
    return for_floating(out.spec.dtype, [&](auto type) {
      using T = decltype(type);
      const T* from = in.as<const T>();
      T* to = out.as<T>();
      for_pieces(axis.outer * pieces, 1, [&](std::int64_t piece, std::int64_t) {
        const std::int64_t outer = piece / pieces, first = piece % pieces * rows;
        const std::int64_t last = std::min(first + rows, axis.size);
        T* const own = to + outer * axis.size * inner;
        std::fill(own + first * inner, own + last * inner, T{});
        for (std::int64_t k = 0; k < chosen; ++k) {
          const auto at = static_cast<std::int64_t>(index[k]);
          if (at < first || at >= last) continue;
          const T* part = from + (outer * chosen + k) * inner;
          for (std::int64_t i = 0; i < inner; ++i) own[at * inner + i] += part[i];
        }
      });
    });
  });
}

Status one_hot(const KernelContext& context) {
  const Buffer &indices = context.inputs[0], &out = context.outputs[0];
  const std::int64_t rows = indices.elements();
  if (out.elements() == 0) return {};
  const std::int64_t classes = out.elements() / rows;
  return for_indices(indices, [&](const auto* index) {
    return for_stored(out.spec.dtype, [&](auto type) {
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
