#pragma once
#include <concepts>
#include <optional>

#include "ebb/core/ops/reduce.h"

namespace ebb {

// Operators that compare elements, of every dtype; false is less than true.

// The largest element over axes; NaN where there is one, as in NumPy. The gradient goes to that
// element, in equal shares to equal elements. Throws ShapeError for axes as sum does, and for no
// elements.
Tensor max(const Operand& x, const ReduceOptions& options = {});
// The smallest element over axes. Otherwise as max.
Tensor min(const Operand& x, const ReduceOptions& options = {});
EBB_TAKES_AXES(max, ReduceOptions)
EBB_TAKES_AXES(min, ReduceOptions)

struct ArgOptions {
  std::optional<int> axis = {};  // negative: from the end; none: all elements, in their order
  bool keep = false;             // reduced axes stay, with size 1
};

// The position of the largest element, i64. Of equal elements, and of NaNs, the first. Has no
// derivative, and throws as max does.
Tensor argmax(const Operand& x, const ArgOptions& options = {});
// The position of the smallest element, i64. Otherwise as argmax.
Tensor argmin(const Operand& x, const ArgOptions& options = {});
// Along one axis; argmax(x, 1, true) keeps it, with size 1.
template <std::same_as<bool> Keep = bool>
Tensor argmax(const Operand& x, detail::AxisNumber auto axis, Keep keep = false) {
  return argmax(x, ArgOptions{.axis = static_cast<int>(axis), .keep = keep});
}
template <std::same_as<bool> Keep = bool>
Tensor argmin(const Operand& x, detail::AxisNumber auto axis, Keep keep = false) {
  return argmin(x, ArgOptions{.axis = static_cast<int>(axis), .keep = keep});
}

struct SortOptions {
  int axis = -1;  // negative: from the end
  bool descending = false;
};

// The elements of x in order along an axis. Equal elements keep their order. NaN counts as larger
// than any number: ascending it stands at the end, as in NumPy, descending in front. Gradients go
// back to the elements' places. sort takes the memory of the indices meanwhile; an axis that is not
// the last is moved there first, by a copy. Throws ShapeError.
Tensor sort(const Operand& x, const SortOptions& options = {});
// The positions of the elements in sorted order, i64. gather(x, axis, argsort(x)) is sort(x).
// Throws ShapeError.
Tensor argsort(const Operand& x, const SortOptions& options = {});
// Along an axis.
Tensor sort(const Operand& x, detail::AxisNumber auto axis) {
  return sort(x, SortOptions{.axis = static_cast<int>(axis)});
}
Tensor argsort(const Operand& x, detail::AxisNumber auto axis) {
  return argsort(x, SortOptions{.axis = static_cast<int>(axis)});
}

struct TopK {
  Tensor values, indices;  // both with k elements along the axis; the indices are i64
};
struct TopKOptions {
  int axis = -1;        // negative: from the end
  bool largest = true;  // else the smallest
};
// The k largest elements along an axis, in order, and their positions. They are the first k of sort
// and argsort, descending. Throws ShapeError where there are fewer.
TopK topk(const Operand& x, std::int64_t k, const TopKOptions& options = {});
// Along an axis.
TopK topk(const Operand& x, std::int64_t k, detail::AxisNumber auto axis) {
  return topk(x, k, TopKOptions{.axis = static_cast<int>(axis)});
}

extern const OpDef max_op, min_op, argmax_op, argmin_op, argsort_op, topk_op;

}  // namespace ebb
