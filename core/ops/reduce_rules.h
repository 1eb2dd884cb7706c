// Shared by the shape rules, public functions and gradients of operators that reduce axes. Bit i of
// a mask is axis i.
#pragma once
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb::detail {

inline bool reduces(std::uint32_t mask, int axis) noexcept { return (mask >> axis & 1) != 0; }

inline Shape reduced(const Shape& shape, std::uint32_t mask, bool keep) {
  Shape out;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!reduces(mask, axis))
      out.push_back(shape.dim(axis));
    else if (keep)
      out.push_back(1);
  }
  return out;
}

// The axes that options name. Throws Error where they say both `.axes` and `.axis`.
Axes asked_axes(const OpDef& op, const auto& options, const Operand& x) {
  if (!options.axis.value) return options.axes;
  if (!options.axes.empty()) fail(op, "takes .axis, which is one, or .axes, not both", x);
  return {*options.axis.value};
}

// The shape rule of a reduction to one output, whose attributes have axes and keep.
template <class How>
void output_reduced(Inference& inference, DType dtype) {
  const auto& how = inference.attribute<How>();
  inference.output(dtype, reduced(inference.inputs[0].shape, how.axes, how.keep != 0));
}

// The mask of these axes; of all without any. Throws ShapeError.
inline std::uint32_t mask_of(const OpDef& op, const Axes& axes, const Operand& x) {
  const int rank = tensor_of(op, x).rank();
  std::uint32_t mask = axes.empty() ? (1u << rank) - 1 : 0;
  for (const int axis : axes_of(op, axes, x)) mask |= 1u << axis;
  return mask;
}

// Options that reduce the axes of the mask and keep them, with size 1.
inline ReduceOptions kept(std::uint32_t mask) {
  ReduceOptions options{.keep = true};
  for (int axis = 0; axis < kMaxRank; ++axis)
    if (reduces(mask, axis)) options.axes.push_back(axis);
  return options;
}

// y, a result of a reduction, with the reduced axes, of size 1. With `keep` it has them already.
Tensor with_axes(Tensor y, const auto& how) {
  for (int axis = 0; axis < kMaxRank && how.keep == 0; ++axis)
    if (reduces(how.axes, axis)) y = unsqueeze(y, axis);
  return y;
}

}  // namespace ebb::detail
