// Operators of any dtype that move elements and compute nothing.
#pragma once
#include <initializer_list>

#include "ebb/core/ops/arguments.h"

namespace ebb {

// A copy of x with its axes in another order. Axis i of the result is axis axes[i] of x. x itself
// if the order stays. Throws ShapeError unless each axis of x is named once.
Tensor permute(const Operand& x, const Axes& axes);
// A copy of x with two axes exchanged. Throws ShapeError for an axis that is not there.
Tensor transpose(const Operand& x, int a = -2, int b = -1);

// The tensors joined along an axis (negative: from the end). They have one dtype, and one shape
// except for that axis. Throws ShapeError, which names the tensor that differs, and Error for no
// tensors.
Tensor concat(const ListOf<Tensor>& tensors, int axis = 0, CallSite site = CallSite::here());

// The tensors joined along a new axis, where each takes one place. They have one shape and dtype. A
// negative axis counts from the end of the result. Throws as concat.
Tensor stack(const ListOf<Tensor>& tensors, int axis = 0, CallSite site = CallSite::here());

// x repeated to a shape by NumPy's rules. -1 keeps the size that x has. x itself where it has that
// shape. The gradient is summed back. Throws ShapeError where x does not broadcast to the shape.
Tensor broadcast_to(const Operand& x, const Shape& shape);
Tensor broadcast_to(const Operand& x, std::initializer_list<std::int64_t> shape);
// x repeated as a whole along an axis (negative: from the end), 0 1 2 0 1 2. x has at most kMaxRank
// - 1 axes. Throws ShapeError.
Tensor tile(const Operand& x, std::int64_t times, int axis = 0);
// x with each of its elements repeated along an axis, 0 0 1 1 2 2. Otherwise as tile.
Tensor repeat(const Operand& x, std::int64_t times, int axis = 0);

// x rotated by `shift` places along an axis (negative: from the end): 0 1 2 by 1 is 2 0 1. Along an
// open axis by no more than its size. Throws ShapeError.
Tensor roll(const Operand& x, std::int64_t shift, int axis);

// The numbers of elements to add before and after an axis.
struct Padding {
  std::int64_t before = 0;
  std::int64_t after = 0;
};
// x with elements of `value` around it, a padding for each axis. The value is converted to x's
// dtype. pad(x, {{0, 0}, {1, 2}}) adds one column on the left and two on the right. The gradient
// passes to x. Throws ShapeError unless there are as many paddings as axes, each in [0, 2^32 - 1].
Tensor pad(const Operand& x, const InlineVector<Padding, kMaxRank>& axes, double value = 0);

extern const OpDef permute_op, concat_op, concat_backward_op, pad_op, broadcast_to_op;

}  // namespace ebb
