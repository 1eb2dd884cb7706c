// The products that make up the operators of core/kernels/linear.h.
#pragma once
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/matmul_layout.h"
#include "ebb/kernels/cuda/plans/product_memory.h"

namespace ebb::cuda {

// A batched matmul. The longest batch axis becomes one product, launched once for each position in
// the other axes. There are other axes only if the two factors broadcast along different ones.
class MatmulProduct {
 public:
  MatmulProduct(DType dtype, const MatmulLayout& layout) noexcept
      : shape(dense_product(dtype, layout.m, layout.n, layout.k, layout.transpose_a,
                            layout.transpose_b)),
        walk_(layout.walk),
        sizes_{layout.m * layout.k, layout.k * layout.n, layout.m * layout.n} {
    if (layout.batch == 1) return;
    for (int i = 1; i < walk_.axes(); ++i)
      if (walk_.size(i) > walk_.size(axis_)) axis_ = i;
    shape.batch = walk_.size(axis_);
    const Offsets next = offsets(axis_, 1);
    shape.a_next = next.a;
    shape.b_next = next.b;
    shape.c_next = next.c;
    launches = shape.batch == 0 ? 0 : layout.batch / shape.batch;
  }

  ProductShape shape;
  std::int64_t launches = 1;

  // Offsets of a launch's first matrices, in elements.
  struct Offsets {
    std::int64_t a = 0, b = 0, c = 0;
  };
  Offsets operator()(std::int64_t launch) const noexcept {
    Offsets all;
    for (int i = 0; i < walk_.axes() && launch > 0; ++i) {
      if (i == axis_) continue;
      const Offsets one = offsets(i, launch % walk_.size(i));
      all = {all.a + one.a, all.b + one.b, all.c + one.c};
      launch /= walk_.size(i);
    }
    return all;
  }

 private:
  // Offsets at index i along an axis.
  Offsets offsets(int axis, std::int64_t i) const noexcept {
    std::int64_t step_c = 1;
    for (int inner = 0; inner < axis; ++inner) step_c *= walk_.size(inner);
    return {i * walk_.steps(axis)[0] * sizes_[0], i * walk_.steps(axis)[1] * sizes_[1],
            i * step_c * sizes_[2]};
  }

  BroadcastWalk<2> walk_;
  std::int64_t sizes_[3];  // elements of a matrix of a, b and c
  int axis_ = 0;           // the axis that is one product
};
inline MatmulProduct matmul_product(const MemoryQuery& query) noexcept {
  return {query.inputs[0].dtype,
          MatmulLayout(query.inputs[0].shape, query.inputs[1].shape, query.outputs[0].shape,
                       query.attribute<MatmulAttributes>())};
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
