#pragma once
#include "ebb/core/kernels/reduce.h"
#include "ebb/core/ops/arguments.h"

namespace ebb {

struct ReduceOptions {
  Axes axes = {};     // none: all of them
  OneAxis axis = {};  // in place of `axes`
  bool keep = false;  // reduced axes stay, with size 1
};

// The sum over axes; 0 over no elements. Floating dtypes stay; i32, i64, u8 and bool give i64, so
// that a sum of bool counts. Throws ShapeError for an axis out of range or named twice.
Tensor sum(const Operand& x, const ReduceOptions& options = {});
// The mean over axes; NaN over no elements. Floating, or of bool in f32, through a cast. Throws
// ShapeError as sum, and for integers.
Tensor mean(const Operand& x, const ReduceOptions& options = {});
EBB_TAKES_AXES(sum, ReduceOptions)
EBB_TAKES_AXES(mean, ReduceOptions)

// Whether any element of a bool tensor is true, over axes: bool. False over no elements. Throws
// ShapeError for other dtypes, and for axes as sum.
Tensor any(const Operand& x, const ReduceOptions& options = {});
// Whether all elements of a bool tensor are true, over axes: bool. True over no elements. Throws as
// any.
Tensor all(const Operand& x, const ReduceOptions& options = {});
EBB_TAKES_AXES(any, ReduceOptions)
EBB_TAKES_AXES(all, ReduceOptions)

// x summed to the shape of `like`, which broadcasts to x's by NumPy's rules. The gradient of a
// broadcast operand is such a sum. x itself where the shapes are known to be equal. Of `like` only
// the shape is read.
Tensor sum_like(const Operand& x, const Operand& like);
// x repeated to the shape of `like` by NumPy's rules, along open axes too. x itself where the
// shapes are known to be equal. Any dtype; of `like` only the shape is read. The gradient is summed
// back. Throws ShapeError where x does not broadcast to it.
Tensor expand_as(const Operand& x, const Operand& like);

namespace detail {
// The transpose of a sum or mean of a tensor of the shape of `like`. dy is repeated along the
// reduced axes, and for a mean divided by their number of elements, less the correction. Of `like`
// only the shape is read.
Tensor broadcast_like(const Operand& dy, const Operand& like, const Reduction& reduction);
}  // namespace detail

extern const OpDef sum_op, mean_op, any_op, all_op, sum_like_op, broadcast_like_op, expand_as_op;

}  // namespace ebb
