#include "ebb/core/kernels/reduce.h"

#include <cstring>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/core/kernels/merged_axes.h"
#include "ebb/kernels/cpu/broadcast.h"
#include "ebb/kernels/cpu/column_sum.h"
#include "ebb/kernels/cpu/in_float.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/reduce_loops.h"

namespace ebb::cpu {
namespace {

// Elements of a sum over everything that are worth a piece.
constexpr std::int64_t kSumPiece = 64 * 1024;

template <class T>
void reduce(const T* in, T* out, const MergedAxes& merged, double divisor, void* workspace) {
  const auto result = [=](double total) { return static_cast<T>(total / divisor); };
  if (merged.inner_reduced && merged.groups == 0) {
    double* partial = static_cast<double*>(workspace);
    if (merged.inner <= kSumPiece) {
      *out = result(add_contiguous(in, merged.inner));
      return;
    }
    for_pieces(merged.inner, kSumPiece, [&](std::int64_t begin, std::int64_t end) {
      partial[begin / kSumPiece] = add_contiguous(in + begin, end - begin);
    });
    double total = 0;
    for (std::int64_t i = 0; i < divide_up(merged.inner, kSumPiece); ++i) total += partial[i];
    *out = result(total);
  } else if (merged.inner_reduced && merged.groups == 1 && merged.inner < kBlock<T>) {
    const std::int64_t n = merged.inner;
    for_pieces(merged.outer_kept, rows_per_piece(n), [=](std::int64_t begin, std::int64_t end) {
      std::int64_t o = begin;
      for (; o + 8 <= end; o += 8) add_short_rows<8>(in + o * n, n, out + o, result);
      for (; o < end; ++o) add_short_rows<1>(in + o * n, n, out + o, result);
    });
  } else if (merged.inner_reduced) {
    const std::int64_t rows = rows_per_piece(merged.inner * merged.outer_reduced);
    for_pieces(merged.outer_kept, rows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o) {
        const T* base = in + merged.offset(o, false);
        double total = 0;
        for (std::int64_t r = 0; r < merged.outer_reduced; ++r)
          total += add_contiguous(base + merged.offset(r, true), merged.inner);
        out[o] = result(total);
      }
    });
  } else if (merged.groups == 1 && divisor == 1) {
    column_sum(in, merged.outer_reduced, merged.inner, out, workspace);
  } else {
    const std::int64_t strips = divide_up(merged.inner, kStrip<T>);
    const std::int64_t width = std::min(merged.inner, kStrip<T>);
    const bool simple = merged.groups <= 2;  // then reduced rows lie evenly
    for_pieces(merged.outer_kept * strips, rows_per_piece(merged.outer_reduced * width),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t o = i / strips, column = i % strips * kStrip<T>;
                   const std::int64_t count = std::min(kStrip<T>, merged.inner - column);
                   const T* base = in + merged.offset(o, false) + column;
                   double totals[kStrip<T>] = {};
                   if (simple) {
                     add_rows(
                         base, merged.outer_reduced, count,
                         [&](std::int64_t r) { return r * merged.inner; }, totals);
                   } else {
                     add_rows(
                         base, merged.outer_reduced, count,
                         [&](std::int64_t r) { return merged.offset(r, true); }, totals);
                   }
                   for (std::int64_t j = 0; j < count; ++j)
                     out[o * merged.inner + column + j] = result(totals[j]);
                 }
               });
  }
}

Status reduce(const Buffer& in, const Buffer& out, const Reduction& reduction, void* workspace) {
  const std::int64_t count = in.elements(), results = out.elements();
  if (results == 0) return {};
  const double divisor = reduction.divisor(count, results);
  return for_wide(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    if (count == 0) {
      for (std::int64_t i = 0; i < results; ++i) out.as<T>()[i] = static_cast<T>(0.0 / divisor);
    } else if (count == results && divisor == 1) {
      if (out.data != in.data) std::memcpy(out.data, in.data, in.spec.bytes());
    } else {
      reduce(in.as<const T>(), out.as<T>(), MergedAxes(in.spec.shape, reduction.axes), divisor,
             workspace);
    }
  });
}

MemoryNeeds needs(const Shape& shape, std::uint32_t axes) noexcept {
  if (shape.elements() == 0) return {};
  const MergedAxes merged(shape, axes);
  if (merged.inner_reduced && merged.groups == 0)
    return {.workspace_bytes =
                merged.inner <= kSumPiece
                    ? 0
                    : static_cast<std::size_t>(divide_up(merged.inner, kSumPiece)) * 8};
  if (!merged.inner_reduced && merged.groups == 1)
    return {.workspace_bytes = column_sum_bytes(merged.outer_reduced, merged.inner)};
  return {};
}

}  // namespace

Status sum(const KernelContext& context) {
  if (!is_floating(context.inputs[0].spec.dtype)) return sum_integers(context);
  if (is_half(context.outputs[0].spec.dtype)) return in_float(context, sum);
  return reduce(context.inputs[0], context.outputs[0], context.attribute<Reduction>(),
                context.workspace);
}

Status sum_like(const KernelContext& context) {
  if (is_half(context.outputs[0].spec.dtype)) return in_float(context, sum_like, reads_only<0>);
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  return reduce(in, out, {.axes = axes_between(in.spec.shape, out.spec.shape)}, context.workspace);
}

MemoryNeeds sum_memory(const MemoryQuery& query) {
  if (!is_floating(query.inputs[0].dtype)) return {};
  if (is_half(query.outputs[0].dtype)) return in_float_memory(query, sum_memory);
  return needs(query.inputs[0].shape, query.attribute<Reduction>().axes);
}

MemoryNeeds sum_like_memory(const MemoryQuery& query) {
  if (is_half(query.outputs[0].dtype))
    return in_float_memory(query, sum_like_memory, reads_only<0>);
  return needs(query.inputs[0].shape, axes_between(query.inputs[0].shape, query.outputs[0].shape));
}

Status broadcast_like(const KernelContext& context) {
  const auto& reduction = context.attribute<Reduction>();
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const Shape& shape = out.spec.shape;
  Shape kept = shape;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if ((reduction.axes >> axis & 1u) != 0) kept.set(axis, 1);
  const double divisor = reduction.divisor(out.elements(), in.elements());
  return for_floating(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    const auto number = static_cast<Computed<T>>(divisor);
    broadcast(functors::Divide(), in.as<const T>(), kept, &number, Shape(), out.as<T>(), shape);
  });
}

}  // namespace ebb::cpu
