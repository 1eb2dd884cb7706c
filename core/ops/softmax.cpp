#include "ebb/core/ops/softmax.h"

#include "ebb/core/kernels/in_float.h"
#include "ebb/core/kernels/softmax.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;

Tensor along(const OpDef& op, const Operand& x, int axis) {
  const int from_the_front = detail::axis_of(op, axis, x);
  return detail::apply_to(op, x, SoftmaxAttributes{x.tensor().rank() - 1 - from_the_front});
}

void infer_softmax(Inference& inference) {
  inference.require(
      inference.inputs[0].shape.rank() > inference.attribute<SoftmaxAttributes>().behind,
      "takes x [..., classes]");
  detail::same_shape(inference);
}

Tensor total(Gradient g, const Operand& x) {
  return sum(
      x, {.axes = {-1 - static_cast<int>(g.attribute<SoftmaxAttributes>().behind)}, .keep = true});
}

}  // namespace

Tensor softmax(const Operand& x, int axis) { return along(softmax_op, x, axis); }
Tensor log_softmax(const Operand& x, int axis) { return along(log_softmax_op, x, axis); }

constinit const OpDef softmax_op{.name = "softmax",
                                 .infer = infer_softmax,
                                 .gradient = [](Gradient g) -> Tensors {
                                   Tensor weighted = g.take_dy() * g.y();
                                   const Tensor all = total(g, weighted);
                                   return {std::move(weighted) - g.take_y() * all};
                                 },
                                 .keeps = output(0),
                                 .takes_over = bit(0),
                                 .cpu = cpu::in_float<cpu::softmax>,
                                 .cuda = {cuda::softmax}};

constinit const OpDef log_softmax_op{.name = "log_softmax",
                                     .infer = infer_softmax,
                                     .gradient = [](Gradient g) -> Tensors {
                                       const Tensor all = total(g, g.dy());
                                       return {g.take_dy() - exp(g.take_y()) * all};
                                     },
                                     .keeps = output(0),
                                     .takes_over = bit(0),
                                     .cpu = cpu::in_float<cpu::log_softmax>,
                                     .cuda = {cuda::log_softmax}};

}  // namespace ebb
