#include "ebb/core/kernels/order.h"
#include "ebb/core/ops/index.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/order.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

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

}  // namespace

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
        "there are no " + std::to_string(k) + " elements along axis " + std::to_string(axis),
        x.tensor(), x.site());
  return in_order(topk_op, x, options.axis, {.count = k, .descending = options.largest});
}

constinit const OpDef argsort_op{.name = "argsort",
                                 .infer = infer_sort,
                                 .stops_gradient = bit(0),
                                 .cpu = {cpu::argsort},
                                 .cuda = {cuda::argsort, cuda::argsort_memory}};

constinit const OpDef topk_op{.name = "topk",
                              .infer = infer_sort,
                              .stops_gradient = bit(0),
                              .cpu = {cpu::argsort},
                              .cuda = {cuda::argsort, cuda::argsort_memory}};

}  // namespace ebb
