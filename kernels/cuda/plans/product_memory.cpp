#include "ebb/kernels/cuda/plans/product_memory.h"

#include <algorithm>

#include "ebb/allocator/profile.h"
#include "ebb/core/kernels/carver.h"

namespace ebb::cuda {

ProductShape dense_product(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k,
                           bool transpose_a, bool transpose_b) noexcept {
  return {.dtype = dtype,
          .m = m,
          .n = n,
          .k = k,
          .transpose_a = transpose_a,
          .transpose_b = transpose_b,
          .a_stride = transpose_a ? m : k,
          .b_stride = transpose_b ? k : n,
          .c_stride = n};
}

// Algorithms use a workspace to split the inner dimension, which pays off where the result has too
// few tiles to fill a device. A quarter of the matrices' own bytes holds such a result several
// times and does not show in a model's peak. Below 256 KiB of matrices there is none. NVIDIA
// recommends 32 MiB for Hopper and 4 MiB before; an H100 lost speed with 1 MiB at 1024x2048
// (PyTorch's pull request 101145), so large products have 8 MiB there at least.
std::size_t product_limit(const ProductShape& shape, const memory::Profile* profile) noexcept {
  constexpr std::size_t kStep = 64 << 10, kLarge = 8 << 20;
  const int capability = profile == nullptr ? 0 : profile->compute_capability;
  const std::size_t most = std::size_t{capability >= 90 ? 32U : capability >= 80 ? 8U : 4U} << 20;
  const std::int64_t elements = shape.m * shape.k + shape.k * shape.n + shape.m * shape.n;
  const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(shape.dtype);
  const std::size_t least = capability >= 90 && bytes >= kLarge ? kLarge : 0;
  return std::clamp(bytes / 4 / kStep * kStep, least, most);
}

std::size_t product_bytes(const ProductShape& shape, const memory::Profile* profile) noexcept {
  Carver carver(nullptr);
  carver.take_bytes(product_limit(shape, profile), kProductAlignment);
  return carver.bytes();
}

}  // namespace ebb::cuda
