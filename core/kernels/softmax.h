#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

struct SoftmaxAttributes {
  std::int64_t behind = 0;  // the number of axes behind the classes
};

// x seen as [outer, classes, inner].
struct SoftmaxView {
  std::int64_t outer, classes, inner;

  SoftmaxView(const Shape& shape, const SoftmaxAttributes& attributes) noexcept {
    const int axis = shape.rank() - 1 - static_cast<int>(attributes.behind);
    outer = detail::product(shape, 0, axis);
    classes = shape.dim(axis);
    inner = detail::product(shape, axis + 1, shape.rank());
  }
};

namespace cpu {
// Input x (floating). out = exp(x) / the sum of exp(x) over the classes, or its logarithm. out may
// be x.
Status softmax(const KernelContext&);
Status log_softmax(const KernelContext&);
}  // namespace cpu
}  // namespace ebb
