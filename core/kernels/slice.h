#pragma once
#include "ebb/core/kernel.h"

namespace ebb {

// Index `index` (negative: from the end) along `axis`, which disappears.
struct SelectAttributes {
  std::int64_t axis = 0;
  std::int64_t index = 0;
};

namespace cpu {
// out = in[..., index, ...]; any dtype.
void select(const KernelContext&);
// out = zeros like input 1 (no data) with input 0 written at the index: the gradient of select.
void select_backward(const KernelContext&);
// out, an i64 scalar, = the leading dimension of input 0 (no data).
void rows(const KernelContext&);
}  // namespace cpu
}  // namespace ebb
