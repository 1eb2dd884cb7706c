// A matrix product, as described to memory rules and kernels/cuda/product.h.
#pragma once
#include <cstddef>
#include <cstdint>

#include "ebb/core/base/dtype.h"

namespace ebb::memory {
struct Profile;
}  // namespace ebb::memory

namespace ebb::cuda {

// c[m, n] = op(a) op(b), or += op(a) op(b). All are row-major; a stride is the number of elements
// from row to row of a matrix in memory, before op.
struct ProductShape {
  DType dtype = DType::f32;
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  std::int64_t a_stride = 0, b_stride = 0, c_stride = 0;
  // Number of products of that shape, and elements from a product's matrix to the next one's: 0
  // where all of them read the same.
  std::int64_t batch = 1, a_next = 0, b_next = 0, c_next = 0;

  bool is_empty() const noexcept { return m == 0 || n == 0 || k == 0 || batch == 0; }
};

// The shape of a product of whole matrices without gaps.
ProductShape dense_product(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k,
                           bool transpose_a = false, bool transpose_b = false) noexcept;

// Bytes of the workspace: product_limit(), and room to align it to kProductAlignment.
std::size_t product_bytes(const ProductShape& shape, const memory::Profile* profile) noexcept;
// Bytes that the product's algorithm may use.
std::size_t product_limit(const ProductShape& shape, const memory::Profile* profile) noexcept;
inline constexpr std::size_t kProductAlignment = 256;

}  // namespace ebb::cuda
