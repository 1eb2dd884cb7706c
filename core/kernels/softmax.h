#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

struct SoftmaxAttributes {
  std::int64_t behind = 0;  // the number of axes behind the classes
};

// x seen as [outer, classes, inner].
struct SoftmaxView {
  std::int64_t outer = 1, classes = 1, inner = 1;

  SoftmaxView(const Shape& shape, const SoftmaxAttributes& attributes) noexcept {
    const int axis = shape.rank() - 1 - static_cast<int>(attributes.behind);
    classes = shape.dim(axis);
    for (int i = 0; i < shape.rank(); ++i)
      if (i != axis) (i < axis ? outer : inner) *= shape.dim(i);
  }
};

namespace cpu {
// Input x (floating). out = exp(x) / the sum of exp(x) over the classes, or its logarithm. out may
// be x.
Status softmax(const KernelContext&);
Status log_softmax(const KernelContext&);
}  // namespace cpu
}  // namespace ebb
