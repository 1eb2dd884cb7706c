#include "ebb/core/kernels/scan.h"

#include <algorithm>
#include <type_traits>

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/index.h"
#include "ebb/kernels/cpu/pieces.h"

namespace ebb::cpu {
namespace {

// Columns that are processed together.
constexpr std::int64_t kColumns = 256;

// Calls step(offset, carried value of the row) for each element along the axis, rows in parallel.
template <class Carried, class Step>
void walk(const IndexedAxis& axis, bool reverse, Carried start, const Step& step) {
  if (axis.inner == 1) {
    for_items(axis.outer, rows_per_piece(axis.size), [&](std::int64_t o) {
      Carried carried = start;
      for (std::int64_t k = 0; k < axis.size; ++k)
        step(o * axis.size + (reverse ? axis.size - 1 - k : k), carried);
    });
    return;
  }
  const std::int64_t strips = divide_up(axis.inner, kColumns);
  const std::int64_t width = std::min(axis.inner, kColumns);
  const auto strip = [&](std::int64_t index) {
    const std::int64_t column = index % strips * kColumns;
    const std::int64_t count = std::min(kColumns, axis.inner - column);
    const std::int64_t first = index / strips * axis.size * axis.inner + column;
    Carried carried[kColumns];
    std::fill_n(carried, count, start);
    for (std::int64_t k = 0; k < axis.size; ++k) {
      const std::int64_t row = first + (reverse ? axis.size - 1 - k : k) * axis.inner;
      for (std::int64_t j = 0; j < count; ++j) step(row + j, carried[j]);
    }
  };
  for_items(axis.outer * strips, rows_per_piece(axis.size * width), strip);
}

template <class T>
void scan(const T* in, T* out, const IndexedAxis& axis, const ScanAttributes& how) {
  using Total = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
  const auto widened = [](T x) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<Total>(x);
    else
      return convert<double>(x);
  };
  const bool product = how.product != 0, exclusive = how.exclusive != 0;
  walk(axis, how.reverse != 0, static_cast<Total>(product ? 1 : 0),
       [=](std::int64_t at, Total& total) {
         const Total before = total, x = widened(in[at]);  // read first: out may be in
         total = product ? total * x : total + x;
         out[at] = convert<T>(exclusive ? before : total);
       });
}

}  // namespace

Status scan(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const auto& how = context.attribute<ScanAttributes>();
  const IndexedAxis axis(in.spec.shape, {how.axis});
  const auto run = [&]<class T>(T) { scan(in.as<const T>(), out.as<T>(), axis, how); };
  return is_floating(in.spec.dtype) ? for_floating(in.spec.dtype, run)
                                    : for_integer(in.spec.dtype, run);
}

Status recurrence(const KernelContext& context) {
  const auto& how = context.attribute<RecurrenceAttributes>();
  const double* a = context.inputs[0].as<const double>();
  const double* b = how.has_sum ? context.inputs[1].as<const double>() : nullptr;
  const double* w = how.has_weight ? context.inputs.back().as<const double>() : nullptr;
  double* out = context.outputs[0].as<double>();
  walk(IndexedAxis(context.outputs[0].spec.shape, {how.axis}), how.reverse != 0,
       how.has_sum ? 0.0 : 1.0, [=](std::int64_t at, double& carried) {
         const double before = carried;
         carried = multiply_finite(a[at], before) + (b != nullptr ? b[at] : 0);
         out[at] = w != nullptr ? multiply_finite(w[at], before) : before;
       });
  return {};
}

}  // namespace ebb::cpu
