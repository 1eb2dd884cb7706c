#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

using Unary = Tensor (*)(const Operand&);
using Binary = Tensor (*)(const Operand&, const Operand&);

Sample unary(const OpDef& op, Unary call, Values values = Values::any) {
  return {.op = &op,
          .name = op.name,
          .inputs = {{{kOpen, 3}, values}},
          .call = [call](const Tensors& in) -> Tensors { return {call(in[0])}; },
          .any_shape = true};
}

Sample with_number(const OpDef& op, const char* name, Tensor (*call)(const Tensor&),
                   Values values = Values::any) {
  return {.op = &op,
          .name = name,
          .inputs = {{{kOpen, 3}, values}},
          .call = [call](const Tensors& in) -> Tensors { return {call(in[0])}; },
          .any_shape = true};
}

}  // namespace

void add_pointwise_samples(std::vector<Sample>& samples) {
  const struct {
    const OpDef& op;
    Binary call;
  } arithmetic[] = {
      {add_op, operator+ },
       {subtract_op, operator- }, {multiply_op, operator* }, {divide_op, operator/ } };
  for (const auto& kind : arithmetic) {
    const OpDef& op = kind.op;
    const auto both = [f = kind.call](const Tensors& in) -> Tensors { return {f(in[0], in[1])}; };
    const auto add = [&](const char* how, Shape a, Shape b) {
      samples.push_back({.op = &op,
                         .name = std::string(op.name) + ", " + how,
                         .inputs = {{a}, {b, Values::apart_from_zero}},
                         .call = both,
                         .any_shape = true});
    };
    add("one shape", {kOpen, 3}, {kOpen, 3});
    add("a row on the right", {kOpen, 3}, {3});
    add("a column on the left", {3, 1}, {kOpen, 3, 4});
    add("both broadcast", {kOpen, 1, 4}, {3, 1});
    add("a scalar on the left", {}, {kOpen, 2});
  }
  samples.push_back(with_number(add_number_op, "x + 2", [](const Tensor& x) { return x + 2; }));
  samples.push_back(with_number(add_number_op, "2 + x", [](const Tensor& x) { return 2 + x; }));
  samples.push_back(
      with_number(subtract_number_op, "x - 2", [](const Tensor& x) { return x - 2; }));
  samples.push_back(
      with_number(subtract_from_number_op, "2 - x", [](const Tensor& x) { return 2 - x; }));
  samples.push_back(
      with_number(multiply_number_op, "x * 3", [](const Tensor& x) { return x * 3; }));
  samples.push_back(
      with_number(multiply_number_op, "3 * x", [](const Tensor& x) { return 3 * x; }));
  samples.push_back(
      with_number(divide_by_number_op, "x / 3", [](const Tensor& x) { return x / 3; }));
  samples.push_back(with_number(
      divide_number_op, "3 / x", [](const Tensor& x) { return 3 / x; }, Values::apart_from_zero));

  samples.push_back(unary(negate_op, operator-));
  samples.push_back(unary(square_op, square));
  samples.push_back(unary(sqrt_op, sqrt, Values::positive));
  samples.push_back(unary(exp_op, exp));
  samples.push_back(unary(log_op, log, Values::positive));
  samples.push_back(unary(tanh_op, tanh));
  samples.push_back(unary(sigmoid_op, sigmoid));
  samples.push_back(unary(relu_op, relu, Values::apart_from_zero));
  samples.push_back(
      {.op = &relu_gradient_op,
       .name = "relu_gradient",
       .inputs = {{{kOpen, 3}}, {{kOpen, 3}, Values::apart_from_zero}},
       .call = [](const Tensors& in) -> Tensors { return {relu_gradient(in[0], in[1])}; }});

  samples.push_back({.op = &fill_like_op,
                     .name = "fill_like",
                     .inputs = {{{kOpen, 3}}},
                     .call = [](const Tensors& in) -> Tensors { return {fill_like(in[0], 7)}; },
                     .order = 0,
                     .any_dtype = true,
                     .any_shape = true});
  samples.push_back(unary(copy_op, copy));
  samples.back().any_dtype = true;
  // In eager mode it is no operator: the handle is all that changes.
  samples.push_back({.op = &detach_op,
                     .name = "detach",
                     .inputs = {{{kOpen, 3}}},
                     .call = [](const Tensors& in) -> Tensors { return {in[0].detach()}; },
                     .order = 0,
                     .any_dtype = true,
                     .any_shape = true});
  samples.push_back({.op = &cast_op,
                     .name = "cast to i32",
                     .inputs = {{{kOpen, 3}}},
                     .call = [](const Tensors& in) -> Tensors { return {cast(in[0], DType::i32)}; },
                     .order = 0,
                     .any_shape = true});
  samples.push_back(
      {.op = &cast_op,
       .name = "cast between floats",
       .inputs = {{{kOpen, 3}}},
       .call = [](const Tensors& in) -> Tensors {
         return {cast(in[0], in[0].dtype() == DType::f32 ? DType::f64 : DType::f32)};
       },
       .order = 0,  // not in the precision that differences need; tests/ops/values.cpp
       .any_shape = true});
}

}  // namespace ebb::tests
