#include "ebb/core/ops/order.h"

#include "ebb/core/kernels/in_float.h"
#include "ebb/core/kernels/order.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/extremes.h"
#include "ebb/core/ops/index.h"
#include "ebb/core/ops/layout.h"
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
  detail::output_reduced<ExtremeAttributes>(inference, how.position ? DType::i64 : x.dtype);
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
  const Tensor y = detail::with_axes(g.take_y(), how);
  const Tensor dy = detail::with_axes(g.take_dy(), how);
  Tensor share = how.smallest ? share_of_maximum(y, g.take_x(0)) : share_of_maximum(g.take_x(0), y);
  const Tensor each = dy / sum(share, detail::kept(how.axes));
  return {std::move(share) * each};
}

void infer_sort(Inference& inference) {
  Shape out = inference.inputs[0].shape;
  inference.require(out.rank() > 0, "takes at least one axis");
  if (const std::int64_t count = inference.attribute<SortAttributes>().count; count >= 0) {
    const std::int64_t there = out.dim(-1);
    if (there != kOpen && there < count)
      inference.fail("there are no " + std::to_string(count) + " elements");
    out.set(out.rank() - 1, count);
  }
  inference.output(DType::i64, out);
}

// The indices along the axis, by way of the last one.
Tensor indices_of(const OpDef& op, const Tensor& x, int axis, const SortAttributes& how,
                  CallSite site) {
  if (axis == x.rank() - 1) return apply_one(op, {x}, how, site);
  return transpose({apply_one(op, {transpose({x, site}, axis, -1)}, how, site), site}, axis, -1);
}

TopK in_order(const OpDef& op, const Operand& operand, int axis, const SortAttributes& how) {
  const Tensor x = detail::tensor_of(op, operand);
  axis = detail::axis_of(op, axis, operand);
  TopK result;
  result.indices = indices_of(op, x, axis, how, operand.site());
  result.values = gather({x, operand.site()}, axis, result.indices);
  return result;
}

constexpr OpDef extreme_op(const char* name) {
  return {.name = name,
          .infer = infer_extreme,
          .gradient = extreme_gradient,
          .keeps = input(0) | output(0),
          .is_identity = detail::keeps_shape,
          .cpu = cpu::in_float<cpu::extreme, cpu::extreme_memory>,
          .cuda = {cuda::extreme, cuda::extreme_memory}};
}
constexpr OpDef position_op(const char* name, void (*infer)(Inference&), DeviceKernel cpu,
                            DeviceKernel cuda) {
  return {.name = name, .infer = infer, .stops_gradient = bit(0), .cpu = cpu, .cuda = cuda};
}
constexpr OpDef arg_extreme_op(const char* name) {
  return position_op(name, infer_extreme, cpu::in_float<cpu::extreme, cpu::extreme_memory>,
                     {cuda::extreme, cuda::extreme_memory});
}
constexpr OpDef sort_op(const char* name) {
  return position_op(name, infer_sort, {cpu::argsort}, {cuda::argsort, cuda::argsort_memory});
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

Tensor sort(const Operand& x, const SortOptions& options) {
  const detail::CalledScope called("sort");
  return in_order(argsort_op, x, options.axis, {.descending = options.descending}).values;
}

Tensor argsort(const Operand& x, const SortOptions& options) {
  const detail::CalledScope called("argsort");
  const int axis = detail::axis_of(argsort_op, options.axis, x);
  return indices_of(argsort_op, x.tensor(), axis, {.descending = options.descending}, x.site());
}

TopK topk(const Operand& x, std::int64_t k, const TopKOptions& options) {
  const detail::CalledScope called("topk");
  const int axis = detail::axis_of(topk_op, options.axis, x);
  const std::int64_t there = x.tensor().shape().dim(axis);
  if (k < 0 || (there != kOpen && there < k))
    detail::fail(
        topk_op,
        "there are no " + std::to_string(k) + " elements along axis " + std::to_string(axis), x);
  return in_order(topk_op, x, options.axis, {.count = k, .descending = options.largest});
}

constinit const OpDef max_op = extreme_op("max");
constinit const OpDef min_op = extreme_op("min");
constinit const OpDef argmax_op = arg_extreme_op("argmax");
constinit const OpDef argmin_op = arg_extreme_op("argmin");
constinit const OpDef argsort_op = sort_op("argsort");
constinit const OpDef topk_op = sort_op("topk");

}  // namespace ebb
