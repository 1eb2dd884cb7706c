// Operators that work element by element. What is added for one serves every test: gradients, both
// modes, open batches, values, extremes, accuracy.
#include <algorithm>
#include <cmath>

#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/activations.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

// NumPy's rule: axes are aligned at the end, and one of size 1 is repeated.
Shape broadcast(const Shape& a, const Shape& b) {
  std::vector<std::int64_t> dims;
  for (int i = 1; i <= std::max(a.rank(), b.rank()); ++i) {
    const std::int64_t of_a = i <= a.rank() ? a[-i] : 1, of_b = i <= b.rank() ? b[-i] : 1;
    dims.insert(dims.begin(), of_a == 1 ? of_b : of_a);
  }
  return Shape(std::span<const std::int64_t>(dims));
}

Array zip(const Array& a, const Array& b, double (*f)(double, double)) {
  Array out(broadcast(a.shape, b.shape));
  std::int64_t next = 0;
  for_each_index(out.shape, [&](const Index& index) {
    out[next++] = f(a[position(a.shape, index)], b[position(b.shape, index)]);
  });
  return out;
}

using Unary = Tensor (*)(const Operand&);
using Binary = Tensor (*)(const Operand&, const Operand&);

// y = f(x), no more than `ulps` off.
Sample unary(const OpDef& op, Unary call, long double (*exact)(long double), double ulps,
             Values values = Values::any) {
  return {.op = &op,
          .name = op.name,
          .inputs = {{{kOpen, 3}, values}},
          .call = [call](const Tensors& in) -> Tensors { return {call(in[0])}; },
          .any_shape = true,
          .reference = [exact](const Application& a) -> Arrays {
            return {map(a[0], [exact](double x) { return static_cast<double>(exact(x)); })};
          },
          .exact = exact,
          .ulps = ulps};
}

// f(a, b) of two tensors.
Sample of_two(const OpDef& op, const char* how, Binary call, double (*f)(double, double),
              const Shape& a, const SampleInput& b) {
  return {.op = &op,
          .name = std::string(op.name) + ", " + how,
          .inputs = {{a}, b},
          .call = [call](const Tensors& in) -> Tensors { return {call(in[0], in[1])}; },
          .reference = [f](const Application& x) -> Arrays { return {zip(x[0], x[1], f)}; },
          .of_two = f};
}

// The gradient of a function from its result.
Sample pair(const OpDef& op, Binary call, double (*f)(double, double), Values values) {
  return of_two(op, "one shape", call, f, {kOpen, 3}, {{kOpen, 3}, values});
}

// f(a, b) of two tensors that broadcast, and of a tensor and a number on either side. `values` are
// those of b.
std::vector<Sample> binary(const BinaryOpDef& op, Binary call, double (*f)(double, double),
                           Values values = Values::any) {
  std::vector<Sample> samples;
  const auto add = [&](const char* how, const Shape& a, const Shape& b) {
    samples.push_back(of_two(op.tensors, how, call, f, a, {b, values}));
    samples.back().any_shape = true;
  };
  add("one shape", {kOpen, 3}, {kOpen, 3});
  add("a row on the right", {kOpen, 3}, {3});
  add("a column on the left", {3, 1}, {kOpen, 3, 4});
  add("both broadcast", {kOpen, 1, 4}, {3, 1});
  add("a scalar on the left", {}, {kOpen, 2});
  samples.push_back({.op = &op.number_right,
                     .name = std::string(op.number_right.name) + ", x and 3",
                     .inputs = {{{kOpen, 3}}},
                     .call = [call](const Tensors& in) -> Tensors { return {call(in[0], 3)}; },
                     .any_shape = true,
                     .reference = [f](const Application& a) -> Arrays {
                       const double n = a.attribute<NumberOperand>().value;
                       return {map(a[0], [=](double x) { return f(x, n); })};
                     }});
  samples.push_back({.op = &op.number_left,
                     .name = std::string(op.number_left.name) + ", 3 and x",
                     .inputs = {{{kOpen, 3}, values}},
                     .call = [call](const Tensors& in) -> Tensors { return {call(3, in[0])}; },
                     .any_shape = true,
                     .reference = [f](const Application& a) -> Arrays {
                       const double n = a.attribute<NumberOperand>().value;
                       return {map(a[0], [=](double x) { return f(n, x); })};
                     }});
  return samples;
}

}  // namespace

void add_pointwise_samples(std::vector<Sample>& samples) {
  const auto add = [&](std::vector<Sample> more) {
    samples.insert(samples.end(), more.begin(), more.end());
  };
  using Real = long double;

  // arithmetic
  add(binary(add_op, ebb::add, [](double a, double b) { return a + b; }));
  add(binary(subtract_op, subtract, [](double a, double b) { return a - b; }));
  add(binary(multiply_op, multiply, [](double a, double b) { return a * b; }));
  add(binary(
      divide_op, divide, [](double a, double b) { return a / b; }, Values::apart_from_zero));
  add({unary(
      negate_op, negate, [](Real x) { return -x; }, 0)});
  add({unary(
      square_op, square, [](Real x) { return x * x; }, 0.5)});
  add({unary(
      sqrt_op, sqrt, [](Real x) { return std::sqrt(x); }, 0.5, Values::positive)});

  // elementary
  add({unary(
      exp_op, exp, [](Real x) { return std::exp(x); }, 1.5)});
  add({unary(
      log_op, log, [](Real x) { return std::log(x); }, 1.5, Values::positive)});
  add({unary(
      tanh_op, tanh, [](Real x) { return std::tanh(x); }, 3)});

  // activations
  add({unary(
      sigmoid_op, sigmoid, [](Real x) { return 1 / (1 + std::exp(-x)); }, 3)});
  add({unary(
      relu_op, relu, [](Real x) { return x < 0 ? 0 : x; }, 0, Values::apart_from_zero)});
  add({pair(
      relu_gradient_op, relu_gradient, [](double dy, double y) { return y > 0 ? dy : 0; },
      Values::apart_from_zero)});
}

}  // namespace ebb::tests
