#include <algorithm>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/merged_axes.h"
#include "ebb/core/kernels/statistics.h"
#include "ebb/kernels/cpu/in_float.h"
#include "ebb/kernels/cpu/pieces.h"

namespace ebb::cpu {
namespace {

// Columns whose products are made side by side.
constexpr std::int64_t kColumns = 64;

// In sequence: side by side, large and small factors in turns would overflow and underflow before
// they meet.
template <class T>
double product_of(const T* row, std::int64_t count) noexcept {
  double product = 1;
  for (std::int64_t i = 0; i < count; ++i) product *= static_cast<double>(row[i]);
  return product;
}

// All elements as one row, in pieces.
template <class T>
void of_all(const T* in, T* out, std::int64_t count, double* partial) {
  for_pieces(count, kPieceElements, [&](std::int64_t begin, std::int64_t end) {
    partial[begin / kPieceElements] = product_of(in + begin, end - begin);
  });
  *out = static_cast<T>(product_of(partial, divide_up(count, kPieceElements)));
}

template <class T>
void of_rows(const T* in, T* out, const MergedAxes& axes) {
  for_pieces(axes.outer_kept, rows_per_piece(axes.inner * axes.outer_reduced),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t o = begin; o < end; ++o) {
                 const T* const base = in + axes.offset(o, false);
                 double product = 1;
                 for (std::int64_t r = 0; r < axes.outer_reduced; ++r)
                   product *= product_of(base + axes.offset(r, true), axes.inner);
                 out[o] = static_cast<T>(product);
               }
             });
}

template <class T>
void of_columns(const T* in, T* out, const MergedAxes& axes) {
  const std::int64_t strips = divide_up(axes.inner, kColumns);
  const std::int64_t width = std::min(axes.inner, kColumns);
  for_pieces(axes.outer_kept * strips, rows_per_piece(axes.outer_reduced * width),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) {
                 const std::int64_t column = i % strips * kColumns;
                 const std::int64_t count = std::min(kColumns, axes.inner - column);
                 const T* const base = in + axes.offset(i / strips, false) + column;
                 double products[kColumns];
                 std::fill_n(products, count, 1.0);
                 for (std::int64_t r = 0; r < axes.outer_reduced; ++r) {
                   const T* const row = base + axes.offset(r, true);
                   for (std::int64_t j = 0; j < count; ++j)
                     products[j] *= static_cast<double>(row[j]);
                 }
                 T* const to = out + i / strips * axes.inner + column;
                 for (std::int64_t j = 0; j < count; ++j) to[j] = static_cast<T>(products[j]);
               }
             });
}

bool is_of_all(const MergedAxes& axes) noexcept { return axes.inner_reduced && axes.groups == 0; }

}  // namespace

Status prod(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  if (is_half(out.spec.dtype)) return in_float(context, prod);
  const std::int64_t count = in.elements(), results = out.elements();
  if (results == 0) return {};
  return for_wide(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    const T* const from = in.as<const T>();
    T* const to = out.as<T>();
    const MergedAxes axes(in.spec.shape, context.attribute<StatisticAttributes>().axes);
    if (count == 0)
      std::fill_n(to, results, T(1));
    else if (is_of_all(axes))
      of_all(from, to, axes.inner, static_cast<double*>(context.workspace));
    else if (axes.inner_reduced)
      of_rows(from, to, axes);
    else
      of_columns(from, to, axes);
  });
}

MemoryNeeds prod_memory(const MemoryQuery& query) {
  if (is_half(query.outputs[0].dtype)) return in_float_memory(query, prod_memory);
  const Shape& shape = query.inputs[0].shape;
  const MergedAxes axes(shape, query.attribute<StatisticAttributes>().axes);
  if (shape.elements() == 0 || !is_of_all(axes)) return {};
  return {.workspace_bytes =
              static_cast<std::size_t>(divide_up(axes.inner, kPieceElements)) * sizeof(double)};
}

}  // namespace ebb::cpu
