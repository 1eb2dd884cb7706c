#include "ebb/core/kernels/index.h"

#include <algorithm>
#include <cstring>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/workers.h"
#include "ebb/kernels/cpu/indices.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/width.h"

namespace ebb::cpu {
namespace {

// A part of a tensor seen as [outer, size, inner]: rows [first, last) of the axis, columns [from,
// to), at one outer position.
struct AxisPart {
  std::int64_t outer, first, last, from, to;

  bool has_row(std::int64_t row) const noexcept { return row >= first && row < last; }
};

// Calls body(part) for parts that cover the tensor. Each part looks through all indices for its own
// rows, so there are no more parts than threads. The axis is cut only where columns do not
// suffice. An element is summed in one part, in the order of the indices, whatever the cut.
// `chosen`: indices per outer position.
template <class Body>
void for_axis_parts(const IndexedAxis& axis, std::int64_t chosen, const Body& body) {
  constexpr std::int64_t line = 16;  // columns, of a part at least
  const std::int64_t work = (axis.size + chosen) * axis.inner;
  const std::int64_t parts =
      std::min(divide_up(work, kPieceElements),
               divide_up(Workers::instance().threads(), std::max<std::int64_t>(1, axis.outer)));
  if (parts <= 1)
    return for_items(axis.outer, rows_per_piece(work), [&](std::int64_t outer) {
      body(AxisPart{outer, 0, axis.size, 0, axis.inner});
    });
  const bool by_columns = divide_up(axis.inner, line) >= parts;
  const std::int64_t whole = by_columns ? axis.inner : axis.size;
  const std::int64_t each =
      by_columns ? round_up(divide_up(whole, parts), line) : divide_up(whole, parts);
  const std::int64_t pieces = divide_up(whole, each);
  for_items(axis.outer * pieces, 1, [&](std::int64_t piece) {
    const std::int64_t begin = piece % pieces * each, end = std::min(begin + each, whole);
    body(by_columns ? AxisPart{piece / pieces, 0, axis.size, begin, end}
                    : AxisPart{piece / pieces, begin, end, 0, axis.inner});
  });
}

// Copies the units that indices [rows, inner] choose of own [size, inner]; whether all of them are
// in range.
template <class Index, class Size>
bool copy_chosen(const std::byte* own, std::int64_t size, const Index* index, std::byte* to,
                 std::int64_t rows, Size inner, auto unit) noexcept {
  if (size == 0) return rows * inner == 0;
  bool in_range = true;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < inner; ++i, ++index, to += unit) {
      auto at = static_cast<std::uint64_t>(*index);
      if (const bool is_inside = at < static_cast<std::uint64_t>(size); !is_inside) {
        in_range = false;
        at = 0;
      }
      std::memcpy(to, own + (static_cast<std::int64_t>(at) * inner + i) * unit,
                  static_cast<std::size_t>(unit));
    }
  return in_range;
}

// Copies what `chosen` indices per outer position choose of the axis: an index is for a whole row
// of neighbours, or (kEach) for one element.
template <bool kEach>
Status choose(const KernelContext& context, std::int64_t chosen) {
  const Buffer &in = context.inputs[0], &indices = context.inputs[1], &out = context.outputs[0];
  if (out.elements() == 0) return {};
  const IndexedAxis axis(in.spec.shape, context.attribute<IndexAttributes>());
  const std::int64_t inner = kEach ? axis.inner : 1;
  const std::int64_t unit =
      (kEach ? 1 : axis.inner) * static_cast<std::int64_t>(size_of(in.spec.dtype));
  OutOfRange out_of_range;
  const auto* from = in.as<const std::byte>();
  auto* to = out.as<std::byte>();
  return for_indices(indices, [&](const auto* index) {
    with_width(unit, [&](auto width) {
      for_pieces(axis.outer * chosen, rows_per_piece(kEach ? inner : unit / 4),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end;) {
                     const std::int64_t outer = row / chosen, first = outer * chosen;
                     const std::int64_t rows = std::min(end, first + chosen) - row;
                     const auto copy = [&](auto inner, auto unit) {
                       if (!copy_chosen(from + outer * axis.size * inner * unit, axis.size,
                                        index + (kEach ? row * inner : row - first),
                                        to + row * inner * unit, rows, inner, unit))
                         out_of_range.note();
                     };
                     constexpr std::integral_constant<std::int64_t, 1> kOne;
                     if constexpr (width == 0)
                       copy(inner, unit);
                     else if (inner == 1)
                       copy(kOne, width);
                     else
                       copy(inner, width);
                     row += rows;
                   }
                 });
    });
    return out_of_range.after({});
  });
}

// The gradient of a kernel that chooses elements of its input 0 by its input 1: out = zeros like
// input 2 (no data), to which add(index, values, own, part) adds the values that belong into the
// part, and returns their number. `values` and `own` are the parts' outer position of input 0 and
// of the output. `chosen`: indices per outer position.
template <class Add>
Status add_chosen(const KernelContext& context, std::int64_t chosen, const Add& add) {
  const Buffer &in = context.inputs[0], &indices = context.inputs[1], &out = context.outputs[0];
  const IndexedAxis axis(out.spec.shape, context.attribute<IndexAttributes>());
  OutOfRange out_of_range(in.elements());
  if (out.elements() == 0) return out_of_range.after({});
  return for_indices(indices, [&](const auto* index) {
    return out_of_range.after(for_wide(out.spec.dtype, [&]<class T>(T) {
      for_axis_parts(axis, chosen, [&](const AxisPart& part) {
        T* const own = out.as<T>() + part.outer * axis.size * axis.inner;
        if (part.to - part.from == axis.inner)
          std::fill(own + part.first * axis.inner, own + part.last * axis.inner, T{});
        else
          for (std::int64_t row = part.first; row < part.last; ++row)
            std::fill(own + row * axis.inner + part.from, own + row * axis.inner + part.to, T{});
        out_of_range.note(
            -add(index, in.as<const T>() + part.outer * chosen * axis.inner, own, part));
      });
    }));
  });
}

}  // namespace

Status index_select(const KernelContext& context) {
  return choose<false>(context, context.inputs[1].elements());
}

Status index_select_backward(const KernelContext& context) {
  const std::int64_t chosen = context.inputs[1].elements();
  const std::int64_t inner =
      IndexedAxis(context.outputs[0].spec.shape, context.attribute<IndexAttributes>()).inner;
  return add_chosen(context, chosen,
                    [=](const auto* index, const auto* values, auto* own, const AxisPart& part) {
                      std::int64_t inside = 0;
                      for (std::int64_t k = 0; k < chosen; ++k) {
                        const auto at = static_cast<std::int64_t>(index[k]);
                        if (!part.has_row(at)) continue;
                        ++inside;
                        for (std::int64_t i = part.from; i < part.to; ++i)
                          own[at * inner + i] += values[k * inner + i];
                      }
                      return inside * (part.to - part.from);
                    });
}

Status gather(const KernelContext& context) {
  const IndexedAxis chosen(context.outputs[0].spec.shape, context.attribute<IndexAttributes>());
  return choose<true>(context, chosen.size);
}

Status gather_backward(const KernelContext& context) {
  const IndexedAxis chosen(context.inputs[0].spec.shape, context.attribute<IndexAttributes>());
  return add_chosen(context, chosen.size,
                    [=](const auto* index, const auto* values, auto* own, const AxisPart& part) {
                      std::int64_t inside = 0;
                      index += part.outer * chosen.size * chosen.inner;
                      for (std::int64_t k = 0; k < chosen.size; ++k)
                        for (std::int64_t i = part.from; i < part.to; ++i) {
                          const auto at = static_cast<std::int64_t>(index[k * chosen.inner + i]);
                          if (!part.has_row(at)) continue;
                          own[at * chosen.inner + i] += values[k * chosen.inner + i];
                          ++inside;
                        }
                      return inside;
                    });
}

Status one_hot(const KernelContext& context) {
  const Buffer &indices = context.inputs[0], &out = context.outputs[0];
  const std::int64_t rows = indices.elements();
  if (out.elements() == 0) return {};
  const std::int64_t classes = out.elements() / rows;
  return for_indices(indices, [&](const auto* index) {
    return for_floating(out.spec.dtype, [&]<class T>(T) {
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
