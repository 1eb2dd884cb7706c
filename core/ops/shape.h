#pragma once
#include <initializer_list>
#include <limits>
#include <span>
#include <tuple>
#include <utility>

#include "ebb/core/ops/arguments.h"

namespace ebb {

// The elements of x in another shape, in x's memory. One dimension may be -1: its size follows from
// the others. 0 is a size. Any dtype. Throws ShapeError where the numbers of elements differ.
Tensor reshape(const Operand& x, const Shape& shape);
Tensor reshape(const Operand& x, std::initializer_list<std::int64_t> shape);
// x with one axis (negative: from the end) split into several of these sizes. One size may be -1:
// it follows from the others. All axes may be open. Shares x's memory. Any dtype. Throws ShapeError
// where the sizes do not make up the axis.
Tensor unflatten(const Operand& x, int axis, const Shape& sizes);
// x [n, ...] as a matrix [n, rest]. Shares x's memory. Any dtype; at least one axis.
Tensor flatten(const Operand& x);

// x with one more axis, of size 1. It becomes axis `axis` of the result (negative: from the end).
// Shares x's memory. Any dtype. Throws ShapeError for an axis out of range, and for a seventh axis.
Tensor unsqueeze(const Operand& x, int axis);
// x without these axes, which are of size 1. Shares x's memory. Any dtype. The axes are named,
// since an open batch may turn out to be of size 1 too. Throws ShapeError for axes of other sizes.
Tensor squeeze(const Operand& x, const AxisList& axes);

namespace detail {
// A tuple rather than an array, whose operator[] would make a temporary's element an lvalue: an
// update of it would be lost without an error.
template <std::size_t... I>
auto tuple_of(Tensors tensors, std::index_sequence<I...>) {
  return std::make_tuple(std::move(tensors[I])...);
}
template <std::size_t N>
using TensorTuple = decltype(tuple_of({}, std::make_index_sequence<N>()));
}  // namespace detail

inline constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

struct SliceOptions {
  int axis = 0;           // negative: from the end
  std::int64_t step = 1;  // negative: backwards
};

// The elements [begin, end) of x along an axis, the leading one by default. slice(x, 1, kEnd,
// {.axis = -1, .step = 2}) takes every other one from 1 on. Negative bounds count from the end, as
// in Python; nothing is clamped. kEnd is behind the last element, or backwards before the first:
// slice(x, -1, kEnd, {.step = -1}) is all of x backwards. In steps of 1 along the leading axis the
// result shares x's memory, else it is a copy. Any dtype. Throws ShapeError for bounds out of range
// or the wrong way round, and for a step of 0.
Tensor slice(const Operand& x, std::int64_t begin, std::int64_t end = kEnd,
             const SliceOptions& options = {});
// The slices of x of these sizes, one after the other along an axis. One size may be -1: the rest;
// along an open axis one has to be. Throws ShapeError where the sizes do not add up to the size of
// the axis.
Tensors split(const Operand& x, const ListOf<std::int64_t>& sizes, int axis = 0);
// As names: auto [a, b] = split<2>(x, {1, 3}).
template <std::size_t N, std::size_t Sizes>
detail::TensorTuple<N> split(const Operand& x, const std::int64_t (&sizes)[Sizes], int axis = 0) {
  static_assert(N == Sizes, "there is a size for each part");
  return detail::tuple_of(split(x, std::span(sizes), axis), std::make_index_sequence<N>());
}
// The `parts` slices of equal size that x is cut into along an axis. Throws ShapeError where the
// size of the axis is no multiple of `parts`, or open.
Tensors chunk(const Operand& x, int parts, int axis = 0);
// As names: auto [a, b] = chunk<2>(x).
template <std::size_t N>
detail::TensorTuple<N> chunk(const Operand& x, int axis = 0) {
  return detail::tuple_of(chunk(x, static_cast<int>(N), axis), std::make_index_sequence<N>());
}
// x backwards along these axes, or without axes along all of them.
Tensor flip(const Operand& x, const AxisList& axes = {});

// The part of x at `index` along `axis`, which disappears; a copy. Both may be negative: from the
// end. Any dtype. Throws ShapeError where one is out of range.
Tensor select(const Operand& x, int axis, std::int64_t index);
// The last step of x [batch, time, feature]: [batch, feature].
Tensor last_step(const Operand& x);

// The size of x along an axis (negative: from the end), as an i64 scalar on x's device. For a
// symbolic tensor it is known once the graph runs, even where the shape is open. Has no derivative.
// Throws ShapeError for an axis out of range.
Tensor size(const Operand& x, int axis);
// The number of samples of a batch, size(x, 0).
Tensor rows(const Operand& x);

namespace detail {
// x in the shape of `like`, of which only the shape is read. Shares x's memory.
Tensor reshape_like(const Operand& x, const Operand& like);
// x [..., n] as [the rest, n]. Shares x's memory.
Tensor as_matrix(const Operand& x);
// x with this axis and the next merged into one. Shares x's memory.
Tensor merge_axes(const Operand& x, int axis);
}  // namespace detail

extern const OpDef reshape_op, unflatten_op, reshape_like_op, as_matrix_op, flatten_op,
    merge_axes_op, unsqueeze_op, squeeze_op, slice_op, strided_slice_op, slice_backward_op,
    select_op, select_backward_op, size_op;

}  // namespace ebb
