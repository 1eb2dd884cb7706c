// Shared by the definitions of pointwise operators.
#pragma once
#include "ebb/core/kernels/integers.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/tensor/op_def.h"

namespace ebb::detail {

using Gradient = const GradientContext&;

// The shape rule of two tensors of one shape.
void infer_pair(Inference& inference);

// Throws where a number stands beside a tensor whose dtype, not floating, does not have it. The
// attributes begin with a NumberOperand.
void require_number_of_dtype(const Inference& inference, DType dtype);

// Shape rules of operators that take i32, i64 and u8 too, of one or two operands. infer_quotient
// refuses a divisor 0 of integers.
void infer_numbers(Inference& inference);
void infer_quotient(Inference& inference);

// The gradient part of an OpDef, all that pointwise operators differ in beside the functor.
struct GradientRule {
  Tensors (*gradient)(Gradient) = nullptr;
  Keeps keeps = {};
  bool (*keeps_input)(std::size_t i, const IndexSet& wants) = nullptr;
  bool (*keeps_output)(std::size_t i, const IndexSet& wants) = nullptr;
};
struct BinaryGradientRules {
  GradientRule tensors, number_right, number_left;
};

// For functions that are constant between jumps.
inline constexpr GradientRule kNoGradient = {.gradient = no_gradient};

// Gradients as an expression of dy and x, or of dy and y. It is called with temporaries: an operand
// that it reads once may be used up, one that it reads more often is a Tensor.
template <class Expression>
constexpr GradientRule from_x(Expression) {
  return {
      .gradient = [](Gradient g) -> Tensors { return {Expression()(g.take_dy(), g.take_x(0))}; },
      .keeps = input(0)};
}
template <class Expression>
constexpr GradientRule from_y(Expression) {
  return {.gradient = [](Gradient g) -> Tensors { return {Expression()(g.take_dy(), g.take_y())}; },
          .keeps = output(0)};
}

// The gradient is an operator of its own, op(dy, x) or op(dy, y), with the same attributes.
template <const OpDef& op>
inline constexpr GradientRule kFromInput = {
    .gradient = [](Gradient g) -> Tensors {
      return {apply_to(op, {g.take_dy(), g.take_x(0)}, g.node().attributes)};
    },
    .keeps = input(0)};
template <const OpDef& op>
inline constexpr GradientRule kFromOutput = {
    .gradient = [](Gradient g) -> Tensors {
      return {apply_to(op, {g.take_dy(), g.take_y()}, g.node().attributes)};
    },
    .keeps = output(0)};
// The gradient of such an op(dy, x) itself: linear in dy, and constant in x between jumps.
template <const OpDef& op>
inline constexpr GradientRule kLinearInFirst = {
    .gradient = [](Gradient g) -> Tensors {
      return {apply_to(op, {g.take_dy(), g.take_x(1)}, g.node().attributes), {}};
    },
    .keeps = input(1)};

// y = F(x).
template <class F>
constexpr OpDef unary(const char* name, const GradientRule& rule) {
  return {.name = name,
          .infer = same_shape,
          .gradient = rule.gradient,
          .keeps = rule.keeps,
          .keeps_input = rule.keeps_input,
          .keeps_output = rule.keeps_output,
          .takes_over = bit(0),
          .pointwise = true,
          .cpu = {cpu::map<F>},
          .cuda = {cuda::map<F>}};
}

// F(a, b) of two tensors of one shape: the gradient of a function from its result.
template <class F>
constexpr OpDef pair(const char* name, const GradientRule& rule, Kernel cpu = cpu::pair<F>,
                     Kernel cuda = cuda::pair<F>) {
  OpDef op = unary<F>(name, rule);
  op.infer = infer_pair;
  op.takes_over = bit(0) | bit(1);
  op.cpu = {cpu};
  op.cuda = {cuda};
  return op;
}

// F(a, b) of two operands that broadcast, either of which may be a number. The gradients of two
// tensors go through sum_like.
template <class F>
constexpr BinaryOpDef binary(const char* name, const BinaryGradientRules& rules,
                             void (*infer)(Inference&) = infer_pointwise,
                             void (*infer_number)(Inference&) = same_shape) {
  BinaryOpDef ops = {unary<F>(name, rules.tensors), unary<F>(name, rules.number_right),
                     unary<F>(name, rules.number_left)};
  ops.tensors.infer = infer;
  ops.tensors.takes_over = bit(0) | bit(1);
  ops.number_right.infer = ops.number_left.infer = infer_number;
  for (OpDef* op : {&ops.tensors, &ops.number_right, &ops.number_left}) {
    op->cpu = {cpu::zip<F>};
    op->cuda = {cuda::zip<F>};
  }
  return ops;
}

// unary and binary for operators that take integers too (core/kernels/integers.h).
template <class F>
constexpr OpDef unary_number(const char* name, const GradientRule& rule) {
  OpDef op = unary<F>(name, rule);
  op.infer = infer_numbers;
  op.cpu = {cpu::map_number<F>};
  op.cuda = {cuda::map_number<F>};
  return op;
}
template <class F>
constexpr BinaryOpDef binary_number(const char* name, const BinaryGradientRules& rules,
                                    void (*infer)(Inference&) = infer_numbers,
                                    std::optional<DType> (*common)(DType, DType) = nullptr) {
  BinaryOpDef ops = binary<F>(name, rules, infer, infer);
  ops.common = common;
  for (OpDef* op : {&ops.tensors, &ops.number_right, &ops.number_left}) {
    op->cpu = {cpu::zip_number<F>};
    op->cuda = {cuda::zip_number<F>};
  }
  return ops;
}

// The attributes are a NumberAndOperation.
Tensor apply_binary(const BinaryOpDef& op, const Operand& a, const Operand& b,
                    std::int64_t operation = 0);

// dy, read for input 0's gradient; taken if input 1's does not read it later.
inline Operand first_dy(Gradient g) { return g.wants(1) ? Operand(g.dy()) : Operand(g.take_dy()); }

// The gradients of two operands that broadcast: da(dy) and db(dy), each where it is wanted, summed
// to its operand's shape.
template <class A, class B>
Tensors for_both(Gradient g, const A& da, const B& db) {
  Tensor of_a, of_b;
  if (g.wants(0)) of_a = sum_like(da(first_dy(g)), g.x(0));
  if (g.wants(1)) of_b = sum_like(db(Operand(g.take_dy())), g.x(1));
  return {of_a, of_b};
}

// The number beside the tensor.
inline double number(Gradient g) { return g.attribute<NumberOperand>().value; }

}  // namespace ebb::detail
