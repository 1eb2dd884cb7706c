#include "ebb/kernels/cpu/gemm.h"

#include "ebb/kernels/cpu/gemm_library.h"

namespace ebb::cpu {

Cut::Cut(std::int64_t m, std::int64_t n, std::int64_t k) noexcept {
  if (m <= 0 || n <= 0) return;
  constexpr std::int64_t kRows = 512, kColumns = 128, kWork = 24'000'000;  // operations
  row_blocks = divide_up(m, kRows);
  row_block = divide_up(m, row_blocks);
  column_block = std::min(n, std::max(kColumns, round_up(divide_up(n, 4), 16)));
  while (column_block < n && 2 * row_block * column_block * k < kWork) column_block *= 2;
  column_blocks = divide_up(n, column_block);
  column_block = std::min(n, round_up(divide_up(n, column_blocks), 16));
  column_blocks = divide_up(n, column_block);
}

namespace {

// What a library's entry would cost more than the product itself.
template <class T>
void multiply_tiny(std::int64_t m, std::int64_t n, std::int64_t k, Factor<T> a, Factor<T> b, T* c,
                   std::int64_t c_stride, bool accumulate) noexcept {
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
  if (k <= 0 || m * n * k <= 128) return multiply_tiny(m, n, k, a, b, c, c_stride, accumulate);
  library_multiply(m, n, k, a, b, c, c_stride, accumulate);
}

template void multiply(std::int64_t, std::int64_t, std::int64_t, Factor<float>, Factor<float>,
                       float*, std::int64_t, bool) noexcept;
template void multiply(std::int64_t, std::int64_t, std::int64_t, Factor<double>, Factor<double>,
                       double*, std::int64_t, bool) noexcept;

}  // namespace ebb::cpu
