#pragma once
#include "ebb/core/kernels/broadcast_walk.h"
#include "ebb/core/kernels/linear.h"

namespace ebb {

// The products of matmul, [m, k] by [k, n], and the factors of each product of the batch by its
// number. Where every first factor of a batch meets the same second factor, their rows are one
// matrix and the batch is 1.
struct MatmulLayout {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
  std::int64_t batch = 1;
  BroadcastWalk<2> walk;  // its steps count matrices

  MatmulLayout(const Shape& a, const Shape& b, const Shape& out,
               const MatmulAttributes& attributes) noexcept
      : transpose_a(attributes.transpose_a != 0),
        transpose_b(attributes.transpose_b != 0),
        m(out.dim(-2)),
        n(out.dim(-1)),
        k(a.dim(transpose_a ? -2 : -1)),
        walk(batch_axes(out), batch_axes(a), batch_axes(b)) {
    for (int axis = 0; axis < walk.axes(); ++axis) batch *= walk.size(axis);
    if (walk.axes() == 1 && walk.one(1) && !walk.one(0) && !transpose_a) {
      m *= batch;
      batch = 1;
      walk = BroadcastWalk(Shape(), Shape(), Shape());
    }
  }

  // The numbers of the matrices that product i of the batch multiplies.
  void factors(std::int64_t i, std::int64_t& a, std::int64_t& b) const noexcept {
    a = b = 0;
    for (int axis = 0; axis < walk.axes(); ++axis) {
      a += i % walk.size(axis) * walk.steps(axis)[0];
      b += i % walk.size(axis) * walk.steps(axis)[1];
      i /= walk.size(axis);
    }
  }
};

}  // namespace ebb
