#include "ebb/core/kernels/scan.h"

#include <type_traits>

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/index.h"
#include "ebb/kernels/cpu/dispatch.h"
#include "ebb/kernels/cpu/pieces.h"

namespace ebb::cpu {
namespace {

// Columns that are added up together.
constexpr std::int64_t kColumns = 256;

template <class T>
void cumsum(const T* in, T* out, const IndexedAxis& axis, const CumsumAttributes& how) {
  using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
  const auto widened = [](T x) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<Sum>(x);
    else
      return convert<double>(x);
  };
  if (axis.inner == 1) {
    for_pieces(axis.outer, rows_per_piece(axis.size), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t o = begin; o < end; ++o) {
        Sum sum = 0;
        for (std::int64_t k = 0; k < axis.size; ++k) {
          const std::int64_t at = o * axis.size + (how.reverse ? axis.size - 1 - k : k);
          const Sum before = sum;
          sum += widened(in[at]);  // read first: out may be in
          out[at] = convert<T>(how.exclusive ? before : sum);
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
    Sum sums[kColumns] = {};
    for (std::int64_t k = 0; k < axis.size; ++k) {
      const std::int64_t row = first + (how.reverse ? axis.size - 1 - k : k) * axis.inner;
      for (std::int64_t j = 0; j < count; ++j) {
        const Sum before = sums[j];
        sums[j] += widened(in[row + j]);  // read first: out may be in
        out[row + j] = convert<T>(how.exclusive ? before : sums[j]);
      }
    }
  };
  for_pieces(axis.outer * strips, rows_per_piece(axis.size * width),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) strip(i);
             });
}

}  // namespace

Status cumsum(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const auto& how = context.attribute<CumsumAttributes>();
  if (out.elements() == 0) return {};
  const IndexedAxis axis(in.spec.shape, {how.axis});
  const auto run = [&](auto type) {
    using T = decltype(type);
    cumsum(in.as<const T>(), out.as<T>(), axis, how);
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
