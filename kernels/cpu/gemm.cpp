#include "ebb/kernels/cpu/gemm.h"

namespace ebb::cpu {

Cut::Cut(std::int64_t m, std::int64_t n, std::int64_t k, bool transposed_b) noexcept {
  if (m <= 0 || n <= 0) return;
  // Measured with oneDNN: pieces of 128 columns or rows lose less than a tenth to packing the
  // factors again, pieces of 64 a fifth and more. A transposed right factor costs twice as much to
  // pack, a short inner dimension makes the right factor the smaller one to pack again.
  constexpr std::int64_t kPieces = 4, kLeast = 128, kMostRows = 512,
                         kWork = 4'000'000;  // operations
  const auto cut = [](std::int64_t size, std::int64_t pieces, std::int64_t least) {
    const std::int64_t most = std::max<std::int64_t>(1, size / least);
    return std::min(size, round_up(divide_up(size, std::clamp<std::int64_t>(pieces, 1, most)), 16));
  };
  const std::int64_t worth = std::min(kPieces, 2 * m * n * k / kWork);
  const bool rows_first = k <= kLeast && !transposed_b;
  const std::int64_t least_rows = transposed_b ? 2 * kLeast : kLeast;
  column_block = rows_first ? n : cut(n, worth, kLeast);
  row_block =
      cut(m, std::max(divide_up(m, kMostRows), worth / divide_up(n, column_block)), least_rows);
  if (rows_first) column_block = cut(n, worth / divide_up(m, row_block), kLeast);
  row_blocks = divide_up(m, row_block);
  column_blocks = divide_up(n, column_block);
}

namespace {

// For products so small that a library call would cost more, and for those that the library
// refuses.
template <class T>
void multiply_plainly(std::int64_t m, std::int64_t n, std::int64_t k, Factor<T> a, Factor<T> b,
                      T* c, std::int64_t c_stride, bool accumulate) noexcept {
  const std::int64_t a_row = a.transposed ? 1 : a.stride, a_column = a.transposed ? a.stride : 1;
  const std::int64_t b_row = b.transposed ? 1 : b.stride, b_column = b.transposed ? b.stride : 1;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      T sum = accumulate ? c[i * c_stride + j] : T(0);
      for (std::int64_t l = 0; l < k; ++l)
        sum += a.data[i * a_row + l * a_column] * b.data[l * b_row + j * b_column];
      c[i * c_stride + j] = sum;
    }
}

}  // namespace

template <class T>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Factor<T> a, Factor<T> b, T* c,
              std::int64_t c_stride, bool accumulate) noexcept {
  if (m <= 0 || n <= 0) return;
  const bool is_tiny = k <= 0 || m * n * k <= 128;
  if (is_tiny || !library_multiply(m, n, k, a, b, c, c_stride, accumulate))
    multiply_plainly(m, n, k, a, b, c, c_stride, accumulate);
}

template void multiply(std::int64_t, std::int64_t, std::int64_t, Factor<float>, Factor<float>,
                       float*, std::int64_t, bool) noexcept;
template void multiply(std::int64_t, std::int64_t, std::int64_t, Factor<double>, Factor<double>,
                       double*, std::int64_t, bool) noexcept;

}  // namespace ebb::cpu
