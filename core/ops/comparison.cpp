#include "ebb/core/ops/comparison.h"

#include "ebb/core/kernels/compare.h"
#include "ebb/core/ops/pointwise_rules.h"

namespace ebb {
namespace {

void infer_comparison(Inference& inference) {
  inference.require(
      inference.inputs.size() == 1 || inference.inputs[0].dtype == inference.inputs[1].dtype,
      "takes inputs of one dtype (cast() converts)");
  inference.output(DType::boolean, detail::broadcast(inference, inference.inputs[0].shape,
                                                     inference.inputs.back().shape));
}

void infer_logic(Inference& inference) {
  for (const Spec& input : inference.inputs)
    inference.require(input.dtype == DType::boolean, "takes bool (a comparison gives it: x != 0)");
  infer_comparison(inference);
}

void infer_class(Inference& inference) {
  detail::require_arithmetic(inference);
  infer_comparison(inference);
}

// i64 has all of i32, u8 and bool.
std::optional<DType> common_integer(DType a, DType b) {
  if (is_floating(a) || is_floating(b)) return {};
  return DType::i64;
}

Tensor compare(const BinaryOpDef& op, Comparison operation, const Operand& a, const Operand& b) {
  return detail::apply_binary(op, a, b, static_cast<std::int64_t>(operation));
}
NumberAndOperation told(Comparison operation) {
  return {.number = {}, .operation = static_cast<std::int64_t>(operation)};
}

}  // namespace

Tensor equal(const Operand& a, const Operand& b) {
  return compare(equal_op, Comparison::equal, a, b);
}
Tensor not_equal(const Operand& a, const Operand& b) {
  return compare(not_equal_op, Comparison::not_equal, a, b);
}
Tensor less(const Operand& a, const Operand& b) { return compare(less_op, Comparison::less, a, b); }
Tensor less_equal(const Operand& a, const Operand& b) {
  return compare(less_equal_op, Comparison::less_equal, a, b);
}
Tensor greater(const Operand& a, const Operand& b) {
  return compare(greater_op, Comparison::greater, a, b);
}
Tensor greater_equal(const Operand& a, const Operand& b) {
  return compare(greater_equal_op, Comparison::greater_equal, a, b);
}

Tensor logical_and(const Operand& a, const Operand& b) {
  return detail::apply_pair(logical_and_op, a, b, told(Comparison::both));
}
Tensor logical_or(const Operand& a, const Operand& b) {
  return detail::apply_pair(logical_or_op, a, b, told(Comparison::either));
}
Tensor logical_xor(const Operand& a, const Operand& b) {
  return detail::apply_pair(logical_xor_op, a, b, told(Comparison::not_equal));
}
// x is false.
Tensor logical_not(const Operand& x) {
  return detail::apply_to(
      logical_not_op, x,
      NumberAndOperation{.number = {0, NumberOperand::right},
                         .operation = static_cast<std::int64_t>(Comparison::equal)});
}

Tensor isnan(const Operand& x) { return detail::apply_to(isnan_op, x, told(Comparison::is_nan)); }
Tensor isinf(const Operand& x) { return detail::apply_to(isinf_op, x, told(Comparison::is_inf)); }
Tensor isfinite(const Operand& x) {
  return detail::apply_to(isfinite_op, x, told(Comparison::is_finite));
}

using detail::binary_step, detail::step;

constinit const BinaryOpDef equal_op =
    binary_step("equal", infer_comparison, cpu::compare, cuda::compare, common_integer);
constinit const BinaryOpDef not_equal_op =
    binary_step("not_equal", infer_comparison, cpu::compare, cuda::compare, common_integer);
constinit const BinaryOpDef less_op =
    binary_step("less", infer_comparison, cpu::compare, cuda::compare, common_integer);
constinit const BinaryOpDef less_equal_op =
    binary_step("less_equal", infer_comparison, cpu::compare, cuda::compare, common_integer);
constinit const BinaryOpDef greater_op =
    binary_step("greater", infer_comparison, cpu::compare, cuda::compare, common_integer);
constinit const BinaryOpDef greater_equal_op =
    binary_step("greater_equal", infer_comparison, cpu::compare, cuda::compare, common_integer);

constinit const OpDef logical_and_op =
    step("logical_and", infer_logic, cpu::compare, cuda::compare);
constinit const OpDef logical_or_op = step("logical_or", infer_logic, cpu::compare, cuda::compare);
constinit const OpDef logical_xor_op =
    step("logical_xor", infer_logic, cpu::compare, cuda::compare);
constinit const OpDef logical_not_op =
    step("logical_not", infer_logic, cpu::compare, cuda::compare);

constinit const OpDef isnan_op = step("isnan", infer_class, cpu::compare, cuda::compare);
constinit const OpDef isinf_op = step("isinf", infer_class, cpu::compare, cuda::compare);
constinit const OpDef isfinite_op = step("isfinite", infer_class, cpu::compare, cuda::compare);

}  // namespace ebb
