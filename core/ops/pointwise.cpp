#include "ebb/core/ops/pointwise.h"

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/functors.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

using detail::same_shape;
using Gradient = const GradientContext&;

// Two tensors, broadcast.
void infer_zip(Inference& inference) {
  detail::require_arithmetic(inference);
  inference.output(
      inference.inputs[0].dtype,
      detail::broadcast(inference, inference.inputs[0].shape, inference.inputs[1].shape));
}

void infer_equal_shapes(Inference& inference) {
  detail::require_arithmetic(inference);
  const Shape& a = inference.inputs[0].shape;
  const Shape& b = inference.inputs[1].shape;
  inference.require(detail::may_equal(a, b), "takes two inputs of one shape");
  inference.output(inference.inputs[0].dtype, detail::merge(a, b));
}

// Each factor's gradient reads the other factor.
bool other_input(std::size_t i, const IndexSet& wants) { return wants.has(1 - i); }

// dy where an operator's first input reads it: for the last time unless the second will.
Operand first_dy(Gradient g) { return g.wants(1) ? Operand(g.dy()) : Operand(g.take_dy()); }

double number(Gradient g) { return g.attribute<NumberOperand>().value; }

// `number_left` and `number_right` name the definitions for a plain number on that side.
Tensor zip(const OpDef& op, const OpDef& number_left, const OpDef& number_right, const Operand& a,
           const Operand& b) {
  if (a.is_number() && b.is_number())
    throw Error(detail::message(op.name, "takes at least one tensor", a.site()));
  if (a.is_number())
    return detail::apply_to(number_left, b, NumberOperand{a.number(), NumberOperand::left});
  if (b.is_number())
    return detail::apply_to(number_right, a, NumberOperand{b.number(), NumberOperand::right});
  return apply_one(op, {a, b}, NumberOperand{}, a.site());
}

}  // namespace

Tensor operator+(const Operand& a, const Operand& b) {
  return zip(add_op, add_number_op, add_number_op, a, b);
}
Tensor operator-(const Operand& a, const Operand& b) {
  return zip(subtract_op, subtract_from_number_op, subtract_number_op, a, b);
}
Tensor operator*(const Operand& a, const Operand& b) {
  return zip(multiply_op, multiply_number_op, multiply_number_op, a, b);
}
Tensor operator/(const Operand& a, const Operand& b) {
  return zip(divide_op, divide_number_op, divide_by_number_op, a, b);
}
Tensor operator-(const Operand& x) { return detail::apply_to(negate_op, x); }
Tensor square(const Operand& x) { return detail::apply_to(square_op, x); }
Tensor sqrt(const Operand& x) { return detail::apply_to(sqrt_op, x); }
Tensor exp(const Operand& x) { return detail::apply_to(exp_op, x); }
Tensor log(const Operand& x) { return detail::apply_to(log_op, x); }
Tensor tanh(const Operand& x) { return detail::apply_to(tanh_op, x); }
Tensor sigmoid(const Operand& x) { return detail::apply_to(sigmoid_op, x); }
Tensor relu(const Operand& x) { return detail::apply_to(relu_op, x); }
Tensor relu_gradient(const Operand& dy, const Operand& y) {
  detail::tensor_of(relu_gradient_op, dy);
  detail::tensor_of(relu_gradient_op, y);
  return apply_one(relu_gradient_op, {dy, y}, NumberOperand{}, dy.site());
}

constinit const OpDef add_op{.name = "add",
                             .infer = infer_zip,
                             .gradient = [](Gradient g) -> Tensors {
                               return {g.wants(0) ? sum_like(first_dy(g), g.x(0)) : Tensor(),
                                       g.wants(1) ? sum_like(g.take_dy(), g.x(1)) : Tensor()};
                             },
                             .takes_over = bit(0) | bit(1),
                             .cpu = {cpu::zip<functors::Add>}};

constinit const OpDef add_number_op{.name = "add",
                                    .infer = same_shape,
                                    .gradient = [](Gradient g) -> Tensors { return {g.dy()}; },
                                    .takes_over = bit(0),
                                    .cpu = {cpu::zip<functors::Add>}};

constinit const OpDef subtract_op{.name = "subtract",
                                  .infer = infer_zip,
                                  .gradient = [](Gradient g) -> Tensors {
                                    return {g.wants(0) ? sum_like(first_dy(g), g.x(0)) : Tensor(),
                                            g.wants(1) ? -sum_like(g.take_dy(), g.x(1)) : Tensor()};
                                  },
                                  .takes_over = bit(0) | bit(1),
                                  .cpu = {cpu::zip<functors::Subtract>}};

constinit const OpDef subtract_number_op{.name = "subtract",
                                         .infer = same_shape,
                                         .gradient = [](Gradient g) -> Tensors { return {g.dy()}; },
                                         .takes_over = bit(0),
                                         .cpu = {cpu::zip<functors::Subtract>}};

constinit const OpDef subtract_from_number_op{
    .name = "subtract",
    .infer = same_shape,
    .gradient = [](Gradient g) -> Tensors { return {-g.take_dy()}; },
    .takes_over = bit(0),
    .cpu = {cpu::zip<functors::Subtract>}};

constinit const OpDef multiply_op{.name = "multiply",
                                  .infer = infer_zip,
                                  .gradient = [](Gradient g) -> Tensors {
                                    Tensor da, db;
                                    if (g.wants(0))
                                      da = sum_like(first_dy(g) * g.take_x(1), g.x(0));
                                    if (g.wants(1))
                                      db = sum_like(g.take_dy() * g.take_x(0), g.x(1));
                                    return {da, db};
                                  },
                                  .keeps_input = other_input,
                                  .takes_over = bit(0) | bit(1),
                                  .cpu = {cpu::zip<functors::Multiply>}};

constinit const OpDef multiply_number_op{
    .name = "multiply",
    .infer = same_shape,
    .gradient = [](Gradient g) -> Tensors { return {g.take_dy() * number(g)}; },
    .takes_over = bit(0),
    .cpu = {cpu::zip<functors::Multiply>}};

constinit const OpDef divide_op{
    .name = "divide",
    .infer = infer_zip,
    .gradient = [](Gradient g) -> Tensors {
      Tensor quotient = g.take_dy() / g.take_x(1), da, db;
      if (g.wants(0)) da = sum_like(quotient, g.x(0));
      if (g.wants(1)) db = -sum_like(std::move(quotient) * g.take_y(), g.x(1));
      return {da, db};
    },
    .keeps = input(1),
    .keeps_output = [](std::size_t, const IndexSet& wants) { return wants.has(1); },
    .takes_over = bit(0) | bit(1),
    .cpu = {cpu::zip<functors::Divide>}};

constinit const OpDef divide_by_number_op{
    .name = "divide",
    .infer = same_shape,
    .gradient = [](Gradient g) -> Tensors { return {g.take_dy() / number(g)}; },
    .takes_over = bit(0),
    .cpu = {cpu::zip<functors::Divide>}};

constinit const OpDef divide_number_op{.name = "divide",
                                       .infer = same_shape,
                                       .gradient = [](Gradient g) -> Tensors {
                                         return {g.take_dy() * (-number(g) / g.x(0)) / g.x(0)};
                                       },
                                       .keeps = input(0),
                                       .takes_over = bit(0),
                                       .cpu = {cpu::zip<functors::Divide>}};

constinit const OpDef negate_op{.name = "negate",
                                .infer = same_shape,
                                .gradient = [](Gradient g) -> Tensors { return {-g.take_dy()}; },
                                .takes_over = bit(0),
                                .cpu = {cpu::map<functors::Negate>}};

constinit const OpDef square_op{
    .name = "square",
    .infer = same_shape,
    .gradient = [](Gradient g) -> Tensors { return {g.take_dy() * 2 * g.take_x(0)}; },
    .keeps = input(0),
    .takes_over = bit(0),
    .cpu = {cpu::map<functors::Square>}};

constinit const OpDef sqrt_op{
    .name = "sqrt",
    .infer = same_shape,
    .gradient = [](Gradient g) -> Tensors { return {g.take_dy() * 0.5 / g.take_y()}; },
    .keeps = output(0),
    .takes_over = bit(0),
    .cpu = {cpu::map<functors::Sqrt>}};

constinit const OpDef exp_op{
    .name = "exp",
    .infer = same_shape,
    .gradient = [](Gradient g) -> Tensors { return {g.take_dy() * g.take_y()}; },
    .keeps = output(0),
    .takes_over = bit(0),
    .cpu = {cpu::map<functors::Exp>}};

constinit const OpDef log_op{
    .name = "log",
    .infer = same_shape,
    .gradient = [](Gradient g) -> Tensors { return {g.take_dy() / g.take_x(0)}; },
    .keeps = input(0),
    .takes_over = bit(0),
    .cpu = {cpu::map<functors::Log>}};

constinit const OpDef tanh_op{
    .name = "tanh",
    .infer = same_shape,
    .gradient = [](Gradient g) -> Tensors { return {g.take_dy() * (1 - square(g.take_y()))}; },
    .keeps = output(0),
    .takes_over = bit(0),
    .cpu = {cpu::map<functors::Tanh>}};

constinit const OpDef sigmoid_op{.name = "sigmoid",
                                 .infer = same_shape,
                                 .gradient = [](Gradient g) -> Tensors {
                                   Tensor rest = 1 - g.y();
                                   return {g.take_dy() * (g.take_y() * std::move(rest))};
                                 },
                                 .keeps = output(0),
                                 .takes_over = bit(0),
                                 .cpu = {cpu::map<functors::Sigmoid>}};

constinit const OpDef relu_op{
    .name = "relu",
    .infer = same_shape,
    .gradient = [](Gradient g) -> Tensors { return {relu_gradient(g.take_dy(), g.take_y())}; },
    .keeps = output(0),
    .takes_over = bit(0),
    .cpu = {cpu::map<functors::Relu>}};

constinit const OpDef relu_gradient_op{.name = "relu_gradient",
                                       .infer = infer_equal_shapes,
                                       .gradient = [](Gradient g) -> Tensors {
                                         return {relu_gradient(g.take_dy(), g.take_x(1)), {}};
                                       },
                                       .keeps = input(1),
                                       .takes_over = bit(0) | bit(1),
                                       .cpu = {cpu::zip<functors::ReluGradient>}};

}  // namespace ebb
