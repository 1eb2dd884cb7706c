#include "ebb/core/ops/order.h"

#include "ebb/core/kernels/order.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/extremes.h"
#include "ebb/core/ops/reduce_rules.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;

void infer_extreme(Inference& inference) {
  const Spec& x = inference.inputs[0];
  const auto& how = inference.attribute<ExtremeAttributes>();
  bool of_nothing = false, is_none = false;  // no elements to compare; no results
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    const std::int64_t n = x.shape.dim(axis);
    if (detail::reduces(how.axes, axis))
      of_nothing = of_nothing || n == 0;
    else
      is_none = is_none || n == 0 || n == kOpen;
  }
  inference.require(!of_nothing || is_none, "there is none over no elements");
  inference.output(how.position ? DType::i64 : x.dtype,
                   detail::reduced(x.shape, how.axes, how.keep != 0));
}

Tensor extreme(const OpDef& op, const Operand& x, const Axes& axes, bool keep, bool smallest,
               bool position) {
  return detail::apply_to(op, x,
                          ExtremeAttributes{.axes = detail::mask_of(op, axes, x),
                                            .keep = keep,
                                            .smallest = smallest,
                                            .position = position});
}

Axes one_or_all(const std::optional<int>& axis) { return axis ? Axes{*axis} : Axes{}; }

// Nothing is larger than the largest element, so share_of_maximum(x, y) is equal for all elements
// equal to it, and 0 for the others.
Tensors extreme_gradient(Gradient g) {
  const auto& how = g.attribute<ExtremeAttributes>();
  if (!is_floating(g.x(0).dtype())) return {Tensor()};
  const Tensor y = detail::with_axes(g.take_y(), how.axes, how.keep != 0);
  const Tensor dy = detail::with_axes(g.take_dy(), how.axes, how.keep != 0);
  Tensor share = how.smallest ? share_of_maximum(y, g.take_x(0)) : share_of_maximum(g.take_x(0), y);
  const Tensor each = dy / sum(share, detail::kept(how.axes));
  return {std::move(share) * each};
}

}  // namespace

Tensor max(const Operand& x, const ReduceOptions& options) {
  return extreme(max_op, x, detail::asked_axes(max_op, options, x), options.keep, false, false);
}
Tensor min(const Operand& x, const ReduceOptions& options) {
  return extreme(min_op, x, detail::asked_axes(min_op, options, x), options.keep, true, false);
}
Tensor argmax(const Operand& x, const ArgOptions& options) {
  return extreme(argmax_op, x, one_or_all(options.axis), options.keep, false, true);
}
Tensor argmin(const Operand& x, const ArgOptions& options) {
  return extreme(argmin_op, x, one_or_all(options.axis), options.keep, true, true);
}

constinit const OpDef max_op{.name = "max",
                             .infer = infer_extreme,
                             .gradient = extreme_gradient,
                             .keeps = input(0) | output(0),
                             .is_identity = detail::keeps_shape,
                             .cpu = {cpu::extreme, cpu::extreme_memory},
                             .cuda = {cuda::extreme, cuda::extreme_memory}};

constinit const OpDef min_op{.name = "min",
                             .infer = infer_extreme,
                             .gradient = extreme_gradient,
                             .keeps = input(0) | output(0),
                             .is_identity = detail::keeps_shape,
                             .cpu = {cpu::extreme, cpu::extreme_memory},
                             .cuda = {cuda::extreme, cuda::extreme_memory}};

constinit const OpDef argmax_op{.name = "argmax",
                                .infer = infer_extreme,
                                .stops_gradient = bit(0),
                                .cpu = {cpu::extreme, cpu::extreme_memory},
                                .cuda = {cuda::extreme, cuda::extreme_memory}};

constinit const OpDef argmin_op{.name = "argmin",
                                .infer = infer_extreme,
                                .stops_gradient = bit(0),
                                .cpu = {cpu::extreme, cpu::extreme_memory},
                                .cuda = {cuda::extreme, cuda::extreme_memory}};

}  // namespace ebb
