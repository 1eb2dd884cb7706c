// A matrix product as memory rules and kernels/cuda/product.h speak of it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "ebb/core/base/dtype.h"

namespace ebb::memory {
struct Profile;
}  // namespace ebb::memory

namespace ebb::cuda {

// c[m, n] = op(a) op(b), or += that. All are row-major; a stride is the number of elements from row
// to row of a matrix as it lies, before op.
struct ProductShape {
  DType dtype = DType::f32;
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  std::int64_t a_stride = 0, b_stride = 0, c_stride = 0;
  // How many products of that shape, and elements from the matrix of one to that of the next: 0
  // where all of them read the same.
  std::int64_t batch = 1, a_next = 0, b_next = 0, c_next = 0;

  bool is_empty() const noexcept { return m == 0 || n == 0 || k == 0 || batch == 0; }
};

// Of a product of whole matrices without gaps.
ProductShape dense_product(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k,
                           bool transpose_a = false, bool transpose_b = false) noexcept;

// Of the workspace: what its algorithm may use, and room to align it to kProductAlignment.
std::size_t product_bytes(const ProductShape& shape, const memory::Profile* profile) noexcept;
// What its algorithm may use.
std::size_t product_limit(const ProductShape& shape, const memory::Profile* profile) noexcept;
inline constexpr std::size_t kProductAlignment = 256;

}  // namespace ebb::cuda
