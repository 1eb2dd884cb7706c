#pragma once
#include <algorithm>
#include <cstdint>

#include "ebb/kernels/cpu/pieces.h"

namespace ebb::cpu {

// A row-major matrix as a product reads it: `stride` elements from row to row, and whether it is
// read transposed.
template <class T>
struct Factor {
  const T* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;

  // The submatrix from (row, column) on, of the transpose where it is read so.
  Factor at(std::int64_t row, std::int64_t column) const noexcept {
    if (transposed) std::swap(row, column);
    return {data + row * stride + column, stride, transposed};
  }
};

// c[m, n] = a[m, k] b[k, n], or += with accumulate, on the calling thread alone. f32 through oneDNN
// where it was found, through Eigen otherwise; both may allocate packing buffers of their own.
template <class T>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Factor<T> a, Factor<T> b, T* c,
              std::int64_t c_stride, bool accumulate) noexcept;

// One product, not tiny, by a library, on the calling thread alone (gemm_eigen.cpp,
// gemm_onednn.cpp). False, with c as it was, where the library refuses: its buffers did not fit.
[[nodiscard]] bool library_multiply(std::int64_t m, std::int64_t n, std::int64_t k, Factor<float> a,
                                    Factor<float> b, float* c, std::int64_t c_stride,
                                    bool accumulate) noexcept;
[[nodiscard]] bool library_multiply(std::int64_t m, std::int64_t n, std::int64_t k,
                                    Factor<double> a, Factor<double> b, double* c,
                                    std::int64_t c_stride, bool accumulate) noexcept;

// Cuts a product into blocks of the result for several threads, by its shape alone.
struct Cut {
  std::int64_t row_block = 1, column_block = 1;
  std::int64_t row_blocks = 0, column_blocks = 0;

  Cut(std::int64_t m, std::int64_t n, std::int64_t k, bool transposed_b) noexcept;
  std::int64_t pieces() const noexcept { return row_blocks * column_blocks; }

  struct Block {
    std::int64_t row, rows, column, columns;
  };
  // The block of a piece, in a result [m, n].
  Block block(std::int64_t piece, std::int64_t m, std::int64_t n) const noexcept {
    const std::int64_t row = piece / column_blocks * row_block;
    const std::int64_t column = piece % column_blocks * column_block;
    return {row, std::min(row_block, m - row), column, std::min(column_block, n - column)};
  }
};

// The product cut into pieces, over all threads; then epilogue(row, rows, column, columns) for each
// piece while it is still in cache.
template <class T, class Epilogue>
inline void multiply_with(std::int64_t m, std::int64_t n, std::int64_t k, Factor<T> a, Factor<T> b,
                          T* c, std::int64_t c_stride, bool accumulate, const Epilogue& epilogue) {
  const Cut cut(m, n, k, b.transposed);
  Workers::instance().run(cut.pieces(), [&](std::int64_t piece) {
    const auto [row, rows, column, columns] = cut.block(piece, m, n);
    multiply(rows, columns, k, a.at(row, 0), b.at(0, column), c + row * c_stride + column, c_stride,
             accumulate);
    epilogue(row, rows, column, columns);
  });
}

template <class T>
inline void multiply_all(std::int64_t m, std::int64_t n, std::int64_t k, Factor<T> a, Factor<T> b,
                         T* c, std::int64_t c_stride, bool accumulate = false) {
  multiply_with(m, n, k, a, b, c, c_stride, accumulate,
                [](std::int64_t, std::int64_t, std::int64_t, std::int64_t) {});
}

}  // namespace ebb::cpu
