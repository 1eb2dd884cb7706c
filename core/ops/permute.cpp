#include <algorithm>

#include "ebb/core/kernels/layout.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

void infer_permute(Inference& inference) {
  const auto& order = inference.attribute<PermuteAttributes>();
  const Spec& x = inference.inputs[0];
  if (order.rank != x.shape.rank())
    inference.fail("is given an order of " + std::to_string(order.rank) + " axes");
  Shape out;
  for (int i = 0; i < order.rank; ++i) out.push_back(x.shape.dim(order.axes[i]));
  inference.output(x.dtype, out);
}

// Whether only axes of size 1 change places, and the shape stays.
bool moves_nothing(const MemoryQuery& query) {
  const auto& order = query.attribute<PermuteAttributes>();
  int last = -1;
  for (int i = 0; i < order.rank; ++i) {
    if (query.outputs[0].shape.dim(i) == 1) continue;
    if (order.axes[i] < last) return false;
    last = order.axes[i];
  }
  return detail::keeps_shape(query);
}

PermuteAttributes inverse(const PermuteAttributes& order) {
  PermuteAttributes back{.rank = order.rank};
  for (std::int32_t i = 0; i < order.rank; ++i) back.axes[order.axes[i]] = i;
  return back;
}

}  // namespace

Tensor permute(const Operand& x, const Axes& axes) {
  const Axes order = detail::axes_of(permute_op, axes, x);
  PermuteAttributes attributes{.rank = static_cast<std::int32_t>(order.size())};
  std::copy(order.begin(), order.end(), attributes.axes);
  if (order.size() == static_cast<std::size_t>(x.tensor().rank()) &&
      std::is_sorted(order.begin(), order.end()))
    return x.take();
  return detail::apply_to(permute_op, x, attributes);
}

Tensor transpose(const Operand& x, int a, int b) {
  const detail::CalledScope called("transpose");
  a = detail::axis_of(permute_op, a, x);
  b = detail::axis_of(permute_op, b, x);
  Axes axes;
  for (int i = 0; i < x.tensor().rank(); ++i) axes.push_back(i == a ? b : i == b ? a : i);
  return permute(x, axes);
}

constinit const OpDef permute_op{
    .name = "permute",
    .infer = infer_permute,
    .gradient = [](const GradientContext& g) -> Tensors {
      const auto& order = g.attribute<PermuteAttributes>();
      return {apply_one(permute_op, {g.dy()}, inverse(order), g.site())};
    },
    .selects = true,
    .is_identity = moves_nothing,
    .cpu = {cpu::permute},
    .cuda = {cuda::permute}};

}  // namespace ebb
