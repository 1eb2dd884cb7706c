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

NumberAndOperation told(Comparison operation) {
  return {.number = {}, .operation = static_cast<std::int64_t>(operation)};
}

constexpr OpDef made(const char* name, void (*infer)(Inference&)) {
  return {.name = name,
          .infer = infer,
          .gradient = detail::no_gradient,
          .pointwise = true,
          .cpu = {cpu::compare},
          .cuda = {cuda::compare}};
}
constexpr BinaryOpDef comparison(const char* name) {
  return {made(name, infer_comparison), made(name, infer_comparison), made(name, infer_comparison),
          common_integer};
}

}  // namespace

#define EBB_COMPARISON(name)                                                                   \
  Tensor name(const Operand& a, const Operand& b) {                                            \
    return detail::apply_binary(name##_op, a, b, static_cast<std::int64_t>(Comparison::name)); \
  }
EBB_COMPARISON(equal)
EBB_COMPARISON(not_equal)
EBB_COMPARISON(less)
EBB_COMPARISON(less_equal)
EBB_COMPARISON(greater)
EBB_COMPARISON(greater_equal)
#undef EBB_COMPARISON

Tensor logical_and(const Operand& a, const Operand& b) {
  return detail::apply_to(logical_and_op, {a, b}, told(Comparison::both));
}
Tensor logical_or(const Operand& a, const Operand& b) {
  return detail::apply_to(logical_or_op, {a, b}, told(Comparison::either));
}
Tensor logical_xor(const Operand& a, const Operand& b) {
  return detail::apply_to(logical_xor_op, {a, b}, told(Comparison::not_equal));
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

constinit const BinaryOpDef equal_op = comparison("equal");
constinit const BinaryOpDef not_equal_op = comparison("not_equal");
constinit const BinaryOpDef less_op = comparison("less");
constinit const BinaryOpDef less_equal_op = comparison("less_equal");
constinit const BinaryOpDef greater_op = comparison("greater");
constinit const BinaryOpDef greater_equal_op = comparison("greater_equal");

constinit const OpDef logical_and_op = made("logical_and", infer_logic);
constinit const OpDef logical_or_op = made("logical_or", infer_logic);
constinit const OpDef logical_xor_op = made("logical_xor", infer_logic);
constinit const OpDef logical_not_op = made("logical_not", infer_logic);

constinit const OpDef isnan_op = made("isnan", infer_class);
constinit const OpDef isinf_op = made("isinf", infer_class);
constinit const OpDef isfinite_op = made("isfinite", infer_class);

}  // namespace ebb
