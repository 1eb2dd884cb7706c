#include "ebb/tests/emulated_cuda/cublaslt/gemm.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace ebb::emulated {
namespace {

// Rounds to 10 bits of mantissa, to nearest, ties to even.
float to_tf32(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7F800000u) != 0x7F800000u) bits += 0xFFF + (bits >> 13 & 1);
  return std::bit_cast<float>(bits & ~0x1FFFu);
}
double to_tf32(double value) { return value; }

}  // namespace

template <class T>
void multiply(std::int64_t rows, std::int64_t columns, std::int64_t inner, MatrixView<const T> a,
              MatrixView<const T> b, Sum<T>* out, bool in_tf32) {
  using A = Sum<T>;
  const auto factor = [in_tf32](T value) {
    return in_tf32 ? to_tf32(static_cast<A>(value)) : static_cast<A>(value);
  };
  std::vector<A> by_inner;  // a, with its rows side by side
  for (std::int64_t i = 0; i < inner; ++i)
    for (std::int64_t row = 0; row < rows; ++row) by_inner.push_back(factor(a(row, i)));
  std::fill_n(out, rows * columns, A{0});
  for (std::int64_t column = 0; column < columns; ++column, out += rows)
    for (std::int64_t i = 0; i < inner; ++i) {
      const A by = factor(b(i, column));
      const A* const from = by_inner.data() + i * rows;
      for (std::int64_t row = 0; row < rows; ++row) out[row] += by * from[row];
    }
}

#define EMULATED_MULTIPLY(T)                                                            \
  template void multiply(std::int64_t, std::int64_t, std::int64_t, MatrixView<const T>, \
                         MatrixView<const T>, Sum<T>*, bool);
EMULATED_MULTIPLY(float)
EMULATED_MULTIPLY(double)
EMULATED_MULTIPLY(Float16)
EMULATED_MULTIPLY(BFloat16)
#undef EMULATED_MULTIPLY

}  // namespace ebb::emulated
