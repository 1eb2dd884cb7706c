#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/kernels/functors/activations.h"
#include "ebb/core/kernels/functors/extremes.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/where.h"
#include "ebb/graph/onnx/translation.h"

namespace ebb::detail {

namespace {

// A node of these inputs. A number that is operand a or b stands before or behind the last.
OnnxNames with_number(const OnnxCall& call, const char* type, OnnxNames inputs, DType dtype) {
  const auto& [value, position] = call.attribute<NumberOperand>();
  if (position != NumberOperand::none)
    inputs.insert(position == NumberOperand::left ? inputs.end() - 1 : inputs.end(),
                  call.number(value, dtype));
  return {call.add(type, inputs)};
}
OnnxNames two_operands(const OnnxCall& call, const char* type) {
  return with_number(call, type, call.inputs, call.in(call.inputs.size() - 1).dtype);
}

// A number beside integers is compared as it is, which may be 0.5. ONNX has no order of bool.
OnnxNames compare(const OnnxCall& call, const char* type) {
  const DType dtype = call.in(0).dtype;
  if (is_floating(dtype) || (call.inputs.size() == 2 && dtype != DType::boolean))
    return two_operands(call, type);
  OnnxNames inputs;
  for (const std::string& x : call.inputs) inputs.push_back(call.cast(x, DType::f64));
  return with_number(call, type, inputs, DType::f64);
}
OnnxNames differ(const OnnxCall& call, const char*) {
  return {call.add("Not", compare(call, "Equal"))};
}

// ONNX has no negative of u8.
OnnxNames negate(const OnnxCall& call, const char* type) {
  if (call.in(0).dtype != DType::u8) return {call.add(type, call.inputs)};
  return {call.add("Sub", {call.number(0, DType::u8), call.inputs[0]})};
}
OnnxNames square(const OnnxCall& call, const char* type) {
  return {call.add(type, {call.inputs[0], call.inputs[0]})};
}
OnnxNames rsqrt(const OnnxCall& call, const char* type) {
  return {call.add(type, {call.add("Sqrt", call.inputs)})};
}
OnnxNames silu(const OnnxCall& call, const char* type) {
  return {call.add(type, {call.inputs[0], call.add("Sigmoid", call.inputs)})};
}
OnnxNames gelu_tanh(const OnnxCall& call, const char* type) {
  return {call.add(type, call.inputs, {{"approximate", "tanh"}})};
}
// The only parameter of leaky_relu and of elu.
OnnxNames with_alpha(const OnnxCall& call, const char* type) {
  return {call.add(type, call.inputs, {{"alpha", call.attribute<double>()}})};
}
OnnxNames clamp(const OnnxCall& call, const char* type) {
  const auto& bounds = call.attribute<functors::Bounds>();
  const DType dtype = call.in(0).dtype;
  return {call.add(
      type, {call.inputs[0], call.number(bounds.low, dtype), call.number(bounds.high, dtype)})};
}
OnnxNames cast(const OnnxCall& call, const char*) {
  return {call.cast(call.inputs[0], call.out().dtype)};
}

// clang-format off
// The forms of an operator of two operands.
#define EBB_FORMS(op, type, rule) \
  {&op.tensors, type, rule}, {&op.number_right, type, rule}, {&op.number_left, type, rule}
constexpr OnnxRule kPointwiseRules[] = {
    {&copy_op, "Identity"}, {&detach_op, "Identity"}, {&cast_op, "Cast", cast}, {&negate_op, "Neg", negate},
    {&square_op, "Mul", square}, {&sqrt_op, "Sqrt"}, {&rsqrt_op, "Reciprocal", rsqrt},
    {&abs_op, "Abs"}, {&sign_op, "Sign"}, {&floor_op, "Floor"}, {&ceil_op, "Ceil"},
    {&round_op, "Round"}, {&exp_op, "Exp"}, {&log_op, "Log"}, {&sin_op, "Sin"}, {&cos_op, "Cos"},
    {&tanh_op, "Tanh"}, {&erf_op, "Erf"}, {&sigmoid_op, "Sigmoid"}, {&softplus_op, "Softplus"},
    {&relu_op, "Relu"}, {&leaky_relu_op, "LeakyRelu", with_alpha}, {&elu_op, "Elu", with_alpha},
    {&silu_op, "Mul", silu}, {&gelu_op, "Gelu"}, {&gelu_tanh_op, "Gelu", gelu_tanh},
    {&clamp_op, "Clip", clamp}, EBB_FORMS(add_op, "Add", two_operands),
    EBB_FORMS(subtract_op, "Sub", two_operands), EBB_FORMS(multiply_op, "Mul", two_operands),
    EBB_FORMS(divide_op, "Div", two_operands), EBB_FORMS(pow_op, "Pow", two_operands),
    EBB_FORMS(maximum_op, "Max", two_operands), EBB_FORMS(minimum_op, "Min", two_operands),
    EBB_FORMS(equal_op, "Equal", compare), EBB_FORMS(not_equal_op, "", differ),
    EBB_FORMS(less_op, "Less", compare), EBB_FORMS(less_equal_op, "LessOrEqual", compare),
    EBB_FORMS(greater_op, "Greater", compare),
    EBB_FORMS(greater_equal_op, "GreaterOrEqual", compare), {&logical_and_op, "And"},
    {&logical_or_op, "Or"}, {&logical_xor_op, "Xor"}, {&logical_not_op, "Not"},
    {&isnan_op, "IsNaN"}, {&isinf_op, "IsInf"}, EBB_FORMS(where_op, "Where", two_operands),
    {&masked_fill_op, "Where", two_operands}};
// clang-format on
#undef EBB_FORMS

}  // namespace

std::span<const OnnxRule> onnx_pointwise_rules() { return kPointwiseRules; }

}  // namespace ebb::detail
