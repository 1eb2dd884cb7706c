#include "ebb/core/ops/where.h"

#include "ebb/core/base/error.h"
#include "ebb/core/ops/pointwise_rules.h"
#include "ebb/core/ops/reduce.h"

namespace ebb {
namespace {

using detail::Gradient;

void infer_where(Inference& inference) {
  const auto& inputs = inference.inputs;
  inference.require(inputs[0].dtype == DType::boolean,
                    "takes a condition of bool (a comparison gives it: x != 0)");
  inference.require(inputs[1].dtype == inputs.back().dtype,
                    "takes inputs of one dtype to choose from (cast() converts)");
  detail::require_number_of_dtype(inference, inputs[1].dtype);
  const Shape shape = detail::broadcast(inference, inputs[0].shape, inputs[1].shape);
  inference.output(inputs[1].dtype, detail::broadcast(inference, shape, inputs.back().shape));
}

void infer_masked_fill(Inference& inference) {
  infer_where(inference);
  const Shape& x = inference.inputs[1].shape;
  inference.require(detail::may_equal(inference.outputs[0].shape, x),
                    "the mask does not broadcast to the other input");
  inference.outputs[0].shape = x;
}

// The part of dy for a, or for b: 0 elsewhere, even where dy is NaN.
Tensor part_of_a(Gradient g, const Operand& dy, int input) {
  return sum_like(where({g.x(0), g.site()}, dy, 0), g.x(input));
}
Tensor part_of_b(Gradient g, const Operand& dy, int input) {
  return sum_like(where({g.x(0), g.site()}, 0, dy), g.x(input));
}

Tensors gradient_of_b(Gradient g) { return {{}, part_of_b(g, g.take_dy(), 1)}; }

constexpr OpDef choice(const char* name, void (*infer)(Inference&), Tensors (*gradient)(Gradient),
                       Positions takes_over) {
  return {.name = name,
          .infer = infer,
          .gradient = gradient,
          .keeps = input(0),
          .takes_over = takes_over,
          .stops_gradient = bit(0),
          .pointwise = true,
          .cpu = {cpu::where},
          .cuda = {cuda::where}};
}

}  // namespace

Tensor where(const Operand& condition, const Operand& a, const Operand& b) {
  if (a.is_number() && b.is_number())
    detail::refuse("where",
                   "takes at least one tensor to choose from (cast() makes 1 and 0 of a condition)",
                   condition.site());
  if (a.is_number())
    return detail::apply_to(where_op.number_left, {condition, b},
                            NumberOperand{a.number(), NumberOperand::left});
  if (b.is_number())
    return detail::apply_to(where_op.number_right, {condition, a},
                            NumberOperand{b.number(), NumberOperand::right});
  return detail::apply_to(where_op.tensors, {condition, a, b});
}

Tensor masked_fill(const Operand& x, const Operand& mask, double value) {
  detail::tensor_of(masked_fill_op, x);
  detail::tensor_of(masked_fill_op, mask);
  return apply_one(masked_fill_op, {mask, x}, NumberOperand{value, NumberOperand::left}, x.site());
}

constinit const BinaryOpDef where_op = {
    .tensors = choice(
        "where", infer_where,
        [](Gradient g) -> Tensors {
          Tensor da, db;
          if (g.wants(1)) da = part_of_a(g, g.wants(2) ? Operand(g.dy()) : Operand(g.take_dy()), 1);
          if (g.wants(2)) db = part_of_b(g, g.take_dy(), 2);
          return {{}, da, db};
        },
        bit(1) | bit(2)),
    .number_right = choice(
        "where", infer_where,
        [](Gradient g) -> Tensors {
          return {{}, part_of_a(g, g.take_dy(), 1)};
        },
        bit(1)),
    .number_left = choice("where", infer_where, gradient_of_b, bit(1))};

constinit const OpDef masked_fill_op =
    choice("masked_fill", infer_masked_fill, gradient_of_b, bit(1));

}  // namespace ebb
