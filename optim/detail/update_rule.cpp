#include "ebb/optim/detail/update_rule.h"

#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/optim/kernels/clip.h"

namespace ebb::optim {

using namespace ebb::detail;

RuleResult FusedRule::update(const RuleInput& input) const {
  Tensors slots;
  for (const Tensor& slot : input.slots) slots.push_back(copy(slot));
  Tensor parameter =
      update_in_place({.parameter = copy(input.parameter),
                       .gradient = input.gradient,
                       .slots = {slots.data(), slots.size()},
                       .step = cast(input.step, DType::i64),
                       .rate = cast(input.rate, DType::f64),
                       .scale = Tensor(),
                       .gate = Gate(),
                       .decays = decays({std::string(input.name), input.parameter})});
  return {std::move(parameter), std::move(slots)};
}

bool is_matrix(const Parameters::Entry& parameter) { return parameter.tensor.rank() > 1; }

Tensor apply_update(const OpDef& op, const FusedInput& in, const Attributes& attributes) {
  InlineVector<Input, 8> inputs = {in.parameter};
  for (const Tensor& slot : in.slots) inputs.push_back(slot);
  for (const Tensor* input : {&in.gradient, &in.step, &in.rate}) inputs.push_back(*input);
  if (in.gate.defined())
    for (const Tensor* input : {&in.gate.ready, &in.gate.count}) inputs.push_back(*input);
  if (in.scale.defined()) inputs.push_back(in.scale);
  return ebb::apply_one(op, inputs, attributes, CallSite::here());
}

void infer_update(Inference& inference, std::size_t arrays) {
  const DType parameter = inference.inputs[0].dtype;
  for (std::size_t i = 0; i < arrays; ++i) {
    const DType dtype = inference.inputs[i].dtype;
    if (!is_floating(dtype)) inference.fail(kTakesFloating);
    const bool is_gradient = i + 1 == arrays;
    if (is_half(parameter) && i > 0 && dtype != DType::f32 && !(is_gradient && dtype == parameter))
      inference.fail(is_gradient ? "takes a gradient of the parameter's dtype or of f32"
                                 : "takes f32 state beside a parameter of 16 bits");
    if (!is_half(parameter) && is_half(dtype))
      inference.fail("takes f16 and bf16 beside a parameter of that dtype only");
    if (!may_equal(inference.inputs[i].shape, inference.inputs[0].shape))
      inference.fail("takes tensors of one shape");
  }
  require_scalar(inference, arrays, DType::i64, "the step");
  require_scalar(inference, arrays + 1, DType::f64, "the rate");
  const std::size_t count = inference.inputs.size(), more = count - arrays - 2;
  if (more >= 2) {
    require_scalar(inference, arrays + 2, DType::boolean, "`ready`");
    require_scalar(inference, arrays + 3, DType::i64, "`count`");
  }
  if (more % 2 == 1) {
    const Spec& scale = inference.inputs[count - 1];
    inference.require(scale.dtype == DType::f64 && scale.shape == Shape({kClipNumbers}),
                      "takes the scale as f64[512], of which the first counts");
  }
  output_like_first(inference);
}

void infer_sums(Inference& inference, const char* sums, const char* values) {
  const Spec &sum = inference.inputs[0], &value = inference.inputs[1];
  if (!is_floating(sum.dtype) || is_half(sum.dtype))
    inference.fail(std::string("takes ") + sums + " of f32 or f64");
  if (!is_floating(value.dtype)) inference.fail(kTakesFloating);
  if (is_half(value.dtype) && sum.dtype != DType::f32)
    inference.fail(std::string("takes f32 ") + sums + " of " + values + " of 16 bits");
  inference.require(may_equal(sum.shape, value.shape), "takes tensors of one shape");
  output_like_first(inference);
}

}  // namespace ebb::optim
