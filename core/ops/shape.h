#pragma once
#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <span>

#include "ebb/core/ops/axes.h"
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

// The same elements in another shape; one dimension may be -1: what is left. 0 is a size. Shares
// x's memory. Any dtype. Throws ShapeError where the numbers of elements differ.
Tensor reshape(const Operand& x, const Shape& shape);
Tensor reshape(const Operand& x, std::initializer_list<std::int64_t> shape);
// x with one axis (negative: from the end) as several of these sizes, of which one may be -1: what
// is left. All axes may be open. Shares x's memory. Any dtype. Throws ShapeError where the sizes do
// not make up the axis.
Tensor unflatten(const Operand& x, int axis, const Shape& sizes);
// x [n, ...] as [n, the rest]. Shares x's memory. Any dtype; at least one axis.
Tensor flatten(const Operand& x);

// x with one more axis, of size 1, which is then axis `axis` (negative: from the end). Shares x's
// memory. Any dtype. Throws ShapeError for a place that is none, and for a seventh axis.
Tensor unsqueeze(const Operand& x, int axis);
// x without these axes, which are of size 1. Shares x's memory. Any dtype. They are named, since an
// open batch may be of size 1 too. Throws ShapeError for axes of other sizes.
Tensor squeeze(const Operand& x, const AxisList& axes);

namespace detail {
template <std::size_t N>
std::array<Tensor, N> array_of(Tensors tensors) {
  std::array<Tensor, N> array;
  std::move(tensors.begin(), tensors.end(), array.begin());
  return array;
}
}  // namespace detail

inline constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

struct SliceOptions {
  int axis = 0;           // negative: from the end
  std::int64_t step = 1;  // negative: backwards
};

// x[begin:end] of the leading axis, or along another and in steps: slice(x, 1, kEnd, {.axis = -1,
// .step = 2}). Negative bounds count from the end, as in Python; nothing is clamped. kEnd is behind
// the last element, or backwards before the first, so that slice(x, -1, kEnd, {.step = -1}) is all
// of x backwards. In steps of 1 along the leading axis it shares x's memory, else it is a copy. Any
// dtype. Throws ShapeError for bounds out of range or the wrong way round, and for a step of 0.
Tensor slice(const Operand& x, std::int64_t begin, std::int64_t end = kEnd,
             const SliceOptions& options = {});
// x cut into parts of these sizes, one after the other along an axis; one of them may be -1: what
// is left, as one has to be where the axis is open. Each is a slice. Throws ShapeError where the
// sizes are not those of the axis.
Tensors split(const Operand& x, std::span<const std::int64_t> sizes, int axis = 0);
inline Tensors split(const Operand& x, std::initializer_list<std::int64_t> sizes, int axis = 0) {
  return split(x, std::span(sizes.begin(), sizes.size()), axis);
}
// As names: auto [a, b] = split<2>(x, {1, 3}).
template <std::size_t N, std::size_t Sizes>
std::array<Tensor, N> split(const Operand& x, const std::int64_t (&sizes)[Sizes], int axis = 0) {
  static_assert(N == Sizes, "there is a size for each part");
  return detail::array_of<N>(split(x, std::span(sizes), axis));
}
// x cut into so many parts of one size. Throws ShapeError where that does not come out even, or the
// axis is open.
Tensors chunk(const Operand& x, int parts, int axis = 0);
// As names: auto [a, b] = chunk<2>(x).
template <std::size_t N>
std::array<Tensor, N> chunk(const Operand& x, int axis = 0) {
  return detail::array_of<N>(chunk(x, static_cast<int>(N), axis));
}
// x backwards along these axes; none: all of them.
Tensor flip(const Operand& x, const AxisList& axes = {});

// x at `index` along `axis`, which disappears; a copy. Both may be negative: from the end. Any
// dtype. Throws ShapeError where one is out of range.
Tensor select(const Operand& x, int axis, std::int64_t index);
// The last step of x [batch, time, feature]: [batch, feature].
Tensor last_step(const Operand& x);

// The size of x along an axis (negative: from the end), an i64 scalar on x's device: what the shape
// of a symbolic tensor cannot say before a graph runs. Has no derivative. Throws ShapeError for an
// axis that is not there.
Tensor size(const Operand& x, int axis);
// size(x, 0): the number of samples of a batch.
Tensor rows(const Operand& x);

namespace detail {
// x in the shape of `like`, of which nothing else is read. Shares x's memory.
Tensor reshape_like(const Operand& x, const Operand& like);
// x [..., n] as [the rest, n]. Shares x's memory.
Tensor as_matrix(const Operand& x);
// x with this axis and the one behind it as one. Shares x's memory.
Tensor merge_axes(const Operand& x, int axis);
}  // namespace detail

extern const OpDef reshape_op, unflatten_op, reshape_like_op, as_matrix_op, flatten_op,
    merge_axes_op, unsqueeze_op, squeeze_op, slice_op, strided_slice_op, slice_backward_op,
    select_op, select_backward_op, size_op;

}  // namespace ebb
