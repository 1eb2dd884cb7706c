#pragma once
#include <limits>

#include "ebb/core/kernels/kernel.h"

namespace ebb {

// Index `index` (negative: from the end) along `axis`, which disappears.
struct SelectAttributes {
  std::int64_t axis = 0;
  std::int64_t index = 0;
};

struct SizeAttributes {
  std::int64_t axis = 0;
};

// Rows begin .. end of the leading axis; negative bounds count from the end, `end` at its limit is
// the end.
struct SliceAttributes {
  std::int64_t begin = 0;
  std::int64_t end = std::numeric_limits<std::int64_t>::max();

  // The first row, and the one after the last, of `rows`.
  constexpr std::int64_t first(std::int64_t rows) const noexcept {
    return begin < 0 ? begin + rows : begin;
  }
  constexpr std::int64_t last(std::int64_t rows) const noexcept {
    if (end == std::numeric_limits<std::int64_t>::max()) return rows;
    return end < 0 ? end + rows : end;
  }
};

namespace cpu {
// out = in[..., index, ...]; any dtype.
Status select(const KernelContext&);
// out = zeros like input 1 (no data) with input 0 written at the index: the gradient of select.
Status select_backward(const KernelContext&);
// out = zeros like input 1 (no data) with input 0 as its rows SliceAttributes: the gradient of
// slice, which itself is a view; any dtype.
Status slice_backward(const KernelContext&);
// out, an i64 scalar, = the size of input 0 (no data) along SizeAttributes::axis.
Status size(const KernelContext&);
}  // namespace cpu
// The same, on a GPU.
namespace cuda {
KernelFunction select, select_backward, slice_backward, size;
}  // namespace cuda
}  // namespace ebb
