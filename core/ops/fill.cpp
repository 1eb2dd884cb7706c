#include "ebb/core/ops/fill.h"

#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {

namespace {

Tensor fill(const char* function, const Operand& x, double value) {
  const detail::CalledScope called(function);
  return detail::apply_to(fill_like_op, x, FillAttributes{value});
}

}  // namespace

Tensor full_like(const Operand& x, double value) { return fill("full_like", x, value); }
Tensor fill_like(const Operand& x, double value) { return fill("fill_like", x, value); }
Tensor zeros_like(const Operand& x) { return fill("zeros_like", x, 0); }
Tensor ones_like(const Operand& x) { return fill("ones_like", x, 1); }

constinit const OpDef fill_like_op{
    .name = "fill_like",
    .infer = [](Inference& i) { i.output(i.inputs[0].dtype, i.inputs[0].shape); },
    .gradient = [](const GradientContext&) -> Tensors { return {Tensor()}; },
    .shape_only = bit(0),
    .cpu = {cpu::fill},
    .cuda = {cuda::fill}};

}  // namespace ebb
