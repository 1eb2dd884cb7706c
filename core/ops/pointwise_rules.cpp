#include "ebb/core/ops/pointwise_rules.h"

#include "ebb/core/base/error.h"

namespace ebb::detail {

void infer_binary(Inference& inference) {
  require_arithmetic(inference);
  inference.output(inference.inputs[0].dtype,
                   broadcast(inference, inference.inputs[0].shape, inference.inputs[1].shape));
}

void infer_pair(Inference& inference) {
  require_arithmetic(inference);
  const Shape& a = inference.inputs[0].shape;
  const Shape& b = inference.inputs[1].shape;
  inference.require(may_equal(a, b), "takes two inputs of one shape");
  inference.output(inference.inputs[0].dtype, merge(a, b));
}

Tensor apply_pair(const OpDef& op, const Operand& a, const Operand& b,
                  const Attributes& attributes) {
  tensor_of(op, a);
  tensor_of(op, b);
  return apply_one(op, {a, b}, attributes, a.site());
}

Tensor apply_binary(const BinaryOpDef& op, const Operand& a, const Operand& b) {
  if (a.is_number() && b.is_number())
    throw Error(message(op.tensors.name, "takes at least one tensor", a.site()));
  if (a.is_number())
    return apply_to(op.number_left, b, NumberOperand{a.number(), NumberOperand::left});
  if (b.is_number())
    return apply_to(op.number_right, a, NumberOperand{b.number(), NumberOperand::right});
  return apply_one(op.tensors, {a, b}, NumberOperand{}, a.site());
}

}  // namespace ebb::detail
