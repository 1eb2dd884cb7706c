#pragma once
#include <concepts>

#include "ebb/core/kernels/reduce.h"
#include "ebb/core/ops/axes.h"
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

struct ReduceOptions {
  Axes axes = {};     // none: all of them
  OneAxis axis = {};  // in place of `axes`
  bool keep = false;  // reduced axes stay, with size 1
};

// The sum or mean over axes, of floating dtypes. The sum over nothing is 0, the mean NaN. The sum
// of i32, i64, u8 and bool is i64: a sum of bool counts. The mean of bool is f32, through a cast.
// Throw ShapeError for an axis out of range or named twice, the mean for integers.
Tensor sum(const Operand& x, const ReduceOptions& options = {});
Tensor mean(const Operand& x, const ReduceOptions& options = {});
// Over these axes alone: sum(x, 1), sum(x, {0, 2}); sum(x, 1, true) keeps them, with size 1.
template <std::same_as<bool> Keep = bool>
Tensor sum(const Operand& x, const AxisList& axes, Keep keep = false) {
  return sum(x, ReduceOptions{.axes = axes, .keep = keep});
}
template <std::same_as<bool> Keep = bool>
Tensor mean(const Operand& x, const AxisList& axes, Keep keep = false) {
  return mean(x, ReduceOptions{.axes = axes, .keep = keep});
}

// Whether any or all of a bool tensor are true over axes: bool. Over nothing none is, and all are.
// Throw ShapeError for other dtypes and for axes as above.
Tensor any(const Operand& x, const ReduceOptions& options = {});
Tensor all(const Operand& x, const ReduceOptions& options = {});
template <std::same_as<bool> Keep = bool>
Tensor any(const Operand& x, const AxisList& axes, Keep keep = false) {
  return any(x, ReduceOptions{.axes = axes, .keep = keep});
}
template <std::same_as<bool> Keep = bool>
Tensor all(const Operand& x, const AxisList& axes, Keep keep = false) {
  return all(x, ReduceOptions{.axes = axes, .keep = keep});
}

// x summed to the shape of `like`, which broadcasts to x's by NumPy's rules: what the gradient of a
// broadcast operand needs. x itself where the shapes are known to be equal. Of `like` only the
// shape is read.
Tensor sum_like(const Operand& x, const Operand& like);
// x repeated to the shape of `like` by NumPy's rules, along open axes too. x itself where the
// shapes are known to be equal. Any dtype; of `like` only the shape is read. The gradient is summed
// back. Throws ShapeError where x does not broadcast to it.
Tensor expand_as(const Operand& x, const Operand& like);

namespace detail {
// The transpose of a sum or mean of a tensor of the shape of `like`: dy repeated along the reduced
// axes, divided for a mean by their number of elements, less the correction. Of `like` only the
// shape is read.
Tensor broadcast_like(const Operand& dy, const Operand& like, const Reduction& reduction);
}  // namespace detail

extern const OpDef sum_op, mean_op, any_op, all_op, sum_like_op, broadcast_like_op, expand_as_op;

}  // namespace ebb
