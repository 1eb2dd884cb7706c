#include "ebb/core/ops/custom.h"

#include "ebb/core/base/inline_vector.h"
#include "ebb/core/kernels/custom.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb::detail {

void infer_pointwise(Inference& inference) {
  require_arithmetic(inference);
  Shape shape = inference.inputs[0].shape;
  for (const Spec& input : inference.inputs.subspan(1))
    shape = broadcast(inference, shape, input.shape);
  inference.output(inference.inputs[0].dtype, shape);
}

MemoryNeeds pointwise_memory(const MemoryQuery&) noexcept { return {}; }

Tensor apply_pointwise(const OpDef& op, std::initializer_list<Operand> operands,
                       const Attributes& attributes) {
  InlineVector<Input, kMostPointwiseInputs> inputs;
  for (const Operand& operand : operands) {
    tensor_of(op, operand);
    inputs.emplace_back(Input(operand));
  }
  return apply_one(op, inputs, attributes, operands.begin()->site());
}

}  // namespace ebb::detail
