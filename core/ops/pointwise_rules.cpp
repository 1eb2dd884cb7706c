#include "ebb/core/ops/pointwise_rules.h"

#include <cmath>

#include "ebb/core/base/error.h"
#include "ebb/core/base/formatted.h"
#include "ebb/core/ops/copy.h"

namespace ebb::detail {

void infer_pair(Inference& inference) {
  require_arithmetic(inference);
  const Shape& a = inference.inputs[0].shape;
  const Shape& b = inference.inputs[1].shape;
  inference.require(may_equal(a, b), "takes two inputs of one shape");
  inference.output(inference.inputs[0].dtype, merge(a, b));
}

void require_number_of_dtype(const Inference& inference, DType dtype) {
  const auto& [value, position] = inference.attribute<NumberOperand>();
  if (position == NumberOperand::none || is_floating(dtype)) return;
  const double bits = dtype == DType::boolean ? 1
                      : dtype == DType::u8    ? 8
                      : dtype == DType::i32   ? 31
                                              : 63;
  const double end = std::exp2(bits), low = dtype == DType::i32 || dtype == DType::i64 ? -end : 0;
  if (value >= low && value < end && value == std::floor(value)) return;
  inference.fail(std::string(name(dtype)) + " does not have the number " +
                 formatted("%.17g", value));
}

void infer_numbers(Inference& inference) {
  for (const Spec& input : inference.inputs) {
    inference.require(input.dtype != DType::boolean, "takes numbers, not bool (cast() converts)");
    inference.require(input.dtype == inference.inputs[0].dtype,
                      "takes inputs of one dtype (cast() converts)");
  }
  require_number_of_dtype(inference, inference.inputs[0].dtype);
  inference.output(inference.inputs[0].dtype,
                   broadcast(inference, inference.inputs[0].shape, inference.inputs.back().shape));
}

void infer_quotient(Inference& inference) {
  infer_numbers(inference);
  const auto& [value, position] = inference.attribute<NumberOperand>();
  if (position == NumberOperand::right && value == 0 && !is_floating(inference.inputs[0].dtype))
    inference.fail("divides integers by 0");
}

namespace {

// Casts two tensors to `dtype` and applies. Shapes that do not broadcast are refused with the
// operands as given.
Tensor apply_cast(const OpDef& op, const Operand& a, const Operand& b, DType dtype,
                  const Attributes& attributes) {
  const OpDef cast_function{.name = op.name, .infer = [](Inference& inference) {
                              broadcast(inference, inference.inputs[0].shape,
                                        inference.inputs[1].shape);
                            }};
  const CalledScope called = check(cast_function, {a, b});
  const HeldOperand x(a), y(b);
  return apply_one(op, {cast(*x, dtype), cast(*y, dtype)}, attributes, a.site());
}

}  // namespace

Tensor apply_binary(const BinaryOpDef& op, const Operand& a, const Operand& b,
                    std::int64_t operation) {
  const auto told = [&](const NumberOperand& number) {
    return NumberAndOperation{number, operation};
  };
  if (a.is_number() && b.is_number())
    refuse(op.tensors.name, "takes at least one tensor", a.site());
  if (a.is_number()) return apply_to(op.number_left, b, told({a.number(), NumberOperand::left}));
  if (b.is_number()) return apply_to(op.number_right, a, told({b.number(), NumberOperand::right}));
  if (op.common) {
    const DType x = tensor_of(op.tensors, a).dtype(), y = tensor_of(op.tensors, b).dtype();
    if (const auto dtype = x == y ? std::nullopt : op.common(x, y))
      return apply_cast(op.tensors, a, b, *dtype, told({}));
  }
  return apply_one(op.tensors, {a, b}, told({}), a.site());
}

}  // namespace ebb::detail
