#include "ebb/core/ops/scan.h"

#include "ebb/core/kernels/scan.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using Gradient = const GradientContext&;

void infer_cumsum(Inference& inference) {
  const DType dtype = inference.inputs[0].dtype;
  inference.require(is_floating(dtype) || dtype == DType::i32 || dtype == DType::i64,
                    "takes f32, f64, f16, bf16, i32 or i64 (cast() converts)");
  const auto axis = inference.attribute<CumsumAttributes>().axis;
  if (axis < 0 || axis >= inference.inputs[0].shape.rank())
    inference.fail("there is no axis " + std::to_string(axis));
  detail::output_like_first(inference);
}

}  // namespace

Tensor cumsum(const Operand& x, int axis, const CumsumOptions& options) {
  return detail::apply_to(cumsum_op, x,
                          CumsumAttributes{.axis = detail::axis_of(cumsum_op, axis, x),
                                           .exclusive = options.exclusive,
                                           .reverse = options.reverse});
}

constinit const OpDef cumsum_op{.name = "cumsum",
                                .infer = infer_cumsum,
                                .gradient = [](Gradient g) -> Tensors {
                                  if (!is_floating(g.x(0).dtype())) return {Tensor()};
                                  CumsumAttributes how = g.attribute<CumsumAttributes>();
                                  how.reverse = how.reverse == 0;
                                  return {apply_one(cumsum_op, {g.take_dy()}, how, g.site())};
                                },
                                .takes_over = bit(0),
                                .cpu = {cpu::cumsum},
                                .cuda = {cuda::cumsum}};

}  // namespace ebb
