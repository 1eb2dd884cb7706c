#include <algorithm>
#include <cmath>

#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

using Unary = double (*)(double);
using Binary = double (*)(double, double);

Array map(const Array& x, const std::function<double(double)>& f) {
  Array y(x.shape);
  for (std::int64_t i = 0; i < x.elements(); ++i) y[i] = f(x[i]);
  return y;
}

// NumPy's rule: axes are aligned at the end, and one of size 1 is repeated.
Shape broadcast(const Shape& a, const Shape& b) {
  std::vector<std::int64_t> dims;
  for (int i = 1; i <= std::max(a.rank(), b.rank()); ++i) {
    const std::int64_t of_a = i <= a.rank() ? a[-i] : 1, of_b = i <= b.rank() ? b[-i] : 1;
    dims.insert(dims.begin(), of_a == 1 ? of_b : of_a);
  }
  return Shape(std::span<const std::int64_t>(dims));
}

Array zip(const Array& a, const Array& b, Binary f) {
  Array out(broadcast(a.shape, b.shape));
  std::int64_t next = 0;
  for_each_index(out.shape, [&](const Index& index) {
    out[next++] = f(a[position(a.shape, index)], b[position(b.shape, index)]);
  });
  return out;
}

double relu(double x) { return x < 0 ? 0 : x; }  // NaN stays NaN
double relu_gradient(double dy, double y) { return y > 0 ? dy : 0; }
double sigmoid(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

double converted(double x, DType to) {
  if (is_floating(to)) return x;
  return to == DType::boolean ? (x != 0 ? 1 : 0) : std::trunc(x);
}

}  // namespace

void add_pointwise_references(std::vector<Reference>& references) {
  const auto unary = [&](const OpDef& op, Unary f) {
    references.push_back({&op, [f](const Application& a) -> Arrays { return {map(a[0], f)}; }});
  };
  const auto binary = [&](const OpDef& op, Binary f) {
    references.push_back(
        {&op, [f](const Application& a) -> Arrays { return {zip(a[0], a[1], f)}; }});
  };
  // f(x, the number), whichever side the number stands on.
  const auto number = [&](const OpDef& op, Binary f) {
    references.push_back({&op, [f](const Application& a) -> Arrays {
                            const double n = a.attribute<NumberOperand>().value;
                            return {map(a[0], [=](double x) { return f(x, n); })};
                          }});
  };
  binary(add_op, [](double a, double b) { return a + b; });
  binary(subtract_op, [](double a, double b) { return a - b; });
  binary(multiply_op, [](double a, double b) { return a * b; });
  binary(divide_op, [](double a, double b) { return a / b; });
  binary(relu_gradient_op, relu_gradient);
  number(add_number_op, [](double x, double n) { return x + n; });
  number(subtract_number_op, [](double x, double n) { return x - n; });
  number(subtract_from_number_op, [](double x, double n) { return n - x; });
  number(multiply_number_op, [](double x, double n) { return x * n; });
  number(divide_by_number_op, [](double x, double n) { return x / n; });
  number(divide_number_op, [](double x, double n) { return n / x; });
  unary(negate_op, [](double x) { return -x; });
  unary(square_op, [](double x) { return x * x; });
  unary(sqrt_op, [](double x) { return std::sqrt(x); });
  unary(exp_op, [](double x) { return std::exp(x); });
  unary(log_op, [](double x) { return std::log(x); });
  unary(tanh_op, [](double x) { return std::tanh(x); });
  unary(sigmoid_op, sigmoid);
  unary(relu_op, relu);
  for (const OpDef* op : {&copy_op, &detach_op}) unary(*op, [](double x) { return x; });

  references.push_back({&fill_like_op, [](const Application& a) -> Arrays {
                          const double n = a.attribute<FillAttributes>().value;
                          return {map(a[0], [=](double) { return n; })};
                        }});
  references.push_back({&cast_op, [](const Application& a) -> Arrays {
                          const DType to = a.outputs[0].dtype;
                          return {map(a[0], [=](double x) { return converted(x, to); })};
                        }});
}

}  // namespace ebb::tests
