#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// The axis, from the front, along which indices choose.
struct IndexAttributes {
  std::int64_t axis = 0;
  std::int16_t zero_outside = 0;   // 1: an index out of range chooses 0 of every dtype, on a GPU
  std::int16_t one_per_row = 0;    // 1: the indices' last axis, of size 1, is not the caller's
  std::int32_t check_labels = 0;   // 1: a GPU refuses one as well
  const char* function = nullptr;  // the name that errors show; null: the operator's
};

// A tensor seen as [outer, size, inner], whose middle axis the indices choose along.
struct IndexedAxis {
  std::int64_t outer, size, inner;

  IndexedAxis(const Shape& shape, const IndexAttributes& attributes) noexcept {
    const auto axis = static_cast<int>(attributes.axis);
    outer = detail::product(shape, 0, axis);
    size = shape.dim(axis);
    inner = detail::product(shape, axis + 1, shape.rank());
  }
};

// The value of every byte of an element for an index out of range on a GPU: it makes NaN, or 0 for
// a dtype that is not floating.
constexpr unsigned char missing_byte(DType dtype, const IndexAttributes& attributes = {}) noexcept {
  return is_floating(dtype) && attributes.zero_outside == 0 ? 0xFF : 0;
}

// Kernels of the CPU. They fail where an index is out of range. Nobody would wait for an error of a
// GPU's: there such an index chooses missing_byte(), and a value added there is dropped.
namespace cpu {
// out[o, k, i] = in[o, indices[k], i] for in [outer, size, inner], of any dtype, and indices (i32,
// i64).
Status index_select(const KernelContext&);
// out = zeros like input 2 (no data), seen as [outer, size, inner], with input 0 [outer, indices,
// inner] added at the indices (input 1) in their order. Floating.
Status index_select_backward(const KernelContext&);
// out[k, j] = indices[k] == j; floating. All zeros for an index out of range.
Status one_hot(const KernelContext&);
// out[o, k, i] = in[o, indices[o, k, i], i] for input 0 in [outer, size, inner], of any dtype, and
// indices [outer, k, inner].
Status gather(const KernelContext&);
// out = zeros like input 2 (no data), with input 0 [outer, k, inner] added at the indices (input 1,
// of its shape) in the order of k. Floating.
Status gather_backward(const KernelContext&);
}  // namespace cpu
}  // namespace ebb
