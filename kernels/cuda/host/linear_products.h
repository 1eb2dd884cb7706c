// The products that the operators of core/kernels/linear.h consist of.
#pragma once
#include "ebb/core/kernels/linear.h"
#include "ebb/kernels/cuda/host/product_memory.h"

namespace ebb::cuda {

struct DenseSizes {
  std::int64_t rows = 1, in, out;

  DenseSizes(const Spec& x, const Spec& w) noexcept : in(w.shape.dim(0)), out(w.shape.dim(1)) {
    for (int axis = 0; axis + 1 < x.shape.rank(); ++axis) rows *= x.shape.dim(axis);
  }
};

inline ProductShape matmul_product(const MemoryQuery& query) noexcept {
  const auto& attributes = query.attribute<MatmulAttributes>();
  const bool transpose_a = attributes.transpose_a != 0, transpose_b = attributes.transpose_b != 0;
  const Shape &a = query.inputs[0].shape, &b = query.inputs[1].shape;
  return dense_product(query.inputs[0].dtype, a.dim(transpose_a ? 1 : 0),
                       b.dim(transpose_b ? 0 : 1), a.dim(transpose_a ? 0 : 1), transpose_a,
                       transpose_b);
}
// y = x w
inline ProductShape forward_product(DType dtype, const DenseSizes& size) noexcept {
  return dense_product(dtype, size.rows, size.out, size.in);
}
// dw = x^T da
inline ProductShape weight_product(DType dtype, const DenseSizes& size) noexcept {
  return dense_product(dtype, size.in, size.out, size.rows, true, false);
}
// dx = da w^T
inline ProductShape input_product(DType dtype, const DenseSizes& size) noexcept {
  return dense_product(dtype, size.rows, size.in, size.out, false, true);
}

}  // namespace ebb::cuda
