#include "ebb/core/kernels/scan.h"

#include <algorithm>
#include <type_traits>

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/index.h"
#include "ebb/kernels/cpu/dispatch.h"
#include "ebb/kernels/cpu/pieces.h"

namespace ebb::cpu {
namespace {

// Columns that are gone through together.
constexpr std::int64_t kColumns = 256;

template <class T>
void scan(const T* in, T* out, const IndexedAxis& axis, const ScanAttributes& how) {
  using Total = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
  const auto widened = [](T x) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<Total>(x);
    else
      return convert<double>(x);
  };
  const bool product = how.product != 0;
  const Total none = product ? 1 : 0;
  const auto with = [product](Total total, Total x) { return product ? total * x : total + x; };
  if (axis.inner == 1) {
    for_pieces(axis.outer, rows_per_piece(axis.size), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o) {
        Total total = none;
        for (std::int64_t k = 0; k < axis.size; ++k) {
          const std::int64_t at = o * axis.size + (how.reverse ? axis.size - 1 - k : k);
          const Total before = total;
          total = with(total, widened(in[at]));  // read first: out may be in
          out[at] = convert<T>(how.exclusive ? before : total);
        }
      }
    });
    return;
  }
  const std::int64_t strips = divide_up(axis.inner, kColumns);
  const std::int64_t width = std::min(axis.inner, kColumns);
  const auto strip = [&](std::int64_t index) {
    const std::int64_t column = index % strips * kColumns;
    const std::int64_t count = std::min(kColumns, axis.inner - column);
    const std::int64_t first = index / strips * axis.size * axis.inner + column;
    Total totals[kColumns];
    std::fill_n(totals, count, none);
    for (std::int64_t k = 0; k < axis.size; ++k) {
      const std::int64_t row = first + (how.reverse ? axis.size - 1 - k : k) * axis.inner;
      for (std::int64_t j = 0; j < count; ++j) {
        const Total before = totals[j];
        totals[j] = with(totals[j], widened(in[row + j]));  // read first: out may be in
        out[row + j] = convert<T>(how.exclusive ? before : totals[j]);
      }
    }
  };
  for_pieces(axis.outer * strips, rows_per_piece(axis.size * width),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) strip(i);
             });
}

}  // namespace

Status scan(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const auto& how = context.attribute<ScanAttributes>();
  const IndexedAxis axis(in.spec.shape, {how.axis});
  const auto run = [&](auto type) {
    using T = decltype(type);
    scan(in.as<const T>(), out.as<T>(), axis, how);
  };
  if (in.spec.dtype == DType::i32) {
    run(std::int32_t{});
  } else if (in.spec.dtype == DType::i64) {
    run(std::int64_t{});
  } else {
    return for_stored(in.spec.dtype, run);
  }
  return {};
}

}  // namespace ebb::cpu
