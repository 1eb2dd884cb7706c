#include "ebb/core/ops/fill.h"

#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {

Tensor fill_like(const Operand& x, double value) {
  return detail::apply_to(fill_like_op, x, FillAttributes{value});
}

constinit const OpDef fill_like_op{
    .name = "fill_like",
    .infer = [](Inference& i) { i.output(i.inputs[0].dtype, i.inputs[0].shape); },
    .gradient = [](const GradientContext&) -> Tensors { return {Tensor()}; },
    .shape_only = bit(0),
    .cpu = {cpu::fill},
    .cuda = {cuda::fill}};

}  // namespace ebb
