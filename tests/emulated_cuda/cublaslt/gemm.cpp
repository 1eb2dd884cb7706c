#include "ebb/tests/emulated_cuda/cublaslt/gemm.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace ebb::emulated {
namespace {

constexpr std::int64_t kRows = 256, kInner = 256, kColumns = 4;

// Adds to `columns` columns of out the product of a panel of a (inner by rows, rows side by side)
// and a panel of b (columns by inner).
template <class T, int columns>
void multiply_tile(std::int64_t rows, std::int64_t inner, const T* __restrict__ a,
                   const T* __restrict__ b, T* __restrict__ out, std::int64_t out_step) {
  T sums[columns][kRows] = {};
  for (std::int64_t i = 0; i < inner; ++i)
    for (int column = 0; column < columns; ++column) {
      const T factor = b[column * kInner + i];
      for (std::int64_t row = 0; row < kRows; ++row)
        sums[column][row] += factor * a[i * kRows + row];
    }
  for (int column = 0; column < columns; ++column)
    for (std::int64_t row = 0; row < rows; ++row) out[column * out_step + row] += sums[column][row];
}

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
  std::vector<A> a_panel(static_cast<std::size_t>(kInner * kRows));
  std::vector<A> b_panel(static_cast<std::size_t>(kColumns * kInner));
  std::fill_n(out, rows * columns, A{0});
  for (std::int64_t row = 0; row < rows; row += kRows)
    for (std::int64_t i = 0; i < inner; i += kInner) {
      const std::int64_t height = std::min(kRows, rows - row), depth = std::min(kInner, inner - i);
      std::fill(a_panel.begin(), a_panel.end(), A{0});
      for (std::int64_t y = 0; y < depth; ++y)
        for (std::int64_t x = 0; x < height; ++x)
          a_panel[static_cast<std::size_t>(y * kRows + x)] = factor(a(row + x, i + y));
      for (std::int64_t column = 0; column < columns; column += kColumns) {
        const std::int64_t width = std::min(kColumns, columns - column);
        for (std::int64_t x = 0; x < width; ++x)
          for (std::int64_t y = 0; y < depth; ++y)
            b_panel[static_cast<std::size_t>(x * kInner + y)] = factor(b(i + y, column + x));
        A* const at = out + column * rows + row;
        if (width == kColumns) {
          multiply_tile<A, kColumns>(height, depth, a_panel.data(), b_panel.data(), at, rows);
        } else {
          for (std::int64_t x = 0; x < width; ++x)
            multiply_tile<A, 1>(height, depth, a_panel.data(), b_panel.data() + x * kInner,
                                at + x * rows, rows);
        }
      }
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
