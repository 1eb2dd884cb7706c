// Operators that move elements and compute nothing; of any dtype.
#pragma once
#include <initializer_list>
#include <span>

#include "ebb/core/ops/axes.h"
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

// A copy of x with its axes in another order: axis i of the result is axis axes[i] of x. x itself
// if the order stays. Throws ShapeError unless each axis of x is named once.
Tensor permute(const Operand& x, const Axes& axes);
// A copy of x with two axes exchanged. Throws ShapeError for an axis that is not there.
Tensor transpose(const Operand& x, int a = -2, int b = -1);

// Tensors one after the other along an axis (negative: from the end). Of one dtype, and of one
// shape but for that axis; any number of them, at least one. Throws ShapeError, which says which of
// them differs, and Error for none.
Tensor concat(std::span<const Tensor> tensors, int axis = 0, CallSite site = CallSite::here());
inline Tensor concat(std::initializer_list<Tensor> tensors, int axis = 0,
                     CallSite site = CallSite::here()) {
  return concat(std::span(tensors.begin(), tensors.size()), axis, site);
}

// Tensors of one shape and dtype side by side along a new axis. Negative axes count from the end of
// the result. Any number of tensors, at least one. Throws as concat does.
Tensor stack(std::span<const Tensor> tensors, int axis = 0, CallSite site = CallSite::here());
inline Tensor stack(std::initializer_list<Tensor> tensors, int axis = 0,
                    CallSite site = CallSite::here()) {
  return stack(std::span(tensors.begin(), tensors.size()), axis, site);
}

// x repeated to a shape by NumPy's rules. -1 is the size that x has. x itself where it has that
// shape. The gradient is summed back. Throws ShapeError where x does not broadcast to it.
Tensor broadcast_to(const Operand& x, const Shape& shape);
Tensor broadcast_to(const Operand& x, std::initializer_list<std::int64_t> shape);
// x as a whole so many times along an axis (negative: from the end), 0 1 2 0 1 2. x has at most
// kMaxRank - 1 axes. Throws ShapeError.
Tensor tile(const Operand& x, std::int64_t times, int axis = 0);
// Each element of x so many times along an axis, 0 0 1 1 2 2. Otherwise as tile.
Tensor repeat(const Operand& x, std::int64_t times, int axis = 0);

// x moved `shift` places along an axis (negative: from the end), round its end; 0 1 2 by 1 is 2
// 0 1. Along an open axis by no more than its size. Throws ShapeError.
Tensor roll(const Operand& x, std::int64_t shift, int axis);

// Elements to add before and behind those along an axis.
struct Padding {
  std::int64_t before = 0;
  std::int64_t after = 0;
};
// x among elements of `value`, with a padding for each axis. The value is converted to x's dtype.
// pad(x, {{0, 0}, {1, 2}}) has one column more on the left and two on the right. The gradient
// passes to x. Throws ShapeError for another number of paddings, one below 0 or above 2^32 - 1.
Tensor pad(const Operand& x, const InlineVector<Padding, kMaxRank>& axes, double value = 0);

extern const OpDef permute_op, concat_op, concat_backward_op, pad_op, broadcast_to_op;

}  // namespace ebb
