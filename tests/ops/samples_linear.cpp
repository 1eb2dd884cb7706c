#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "ebb/core/ops/linear.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

// An activation of dense, and its derivative from its result y.
struct Activated {
  Activation activation;
  const char* name;
  double (*of)(double x);
  double (*slope)(double y);
};
constexpr Activated kActivations[] = {
    {Activation::none, "none", [](double x) { return x; }, [](double) { return 1.; }},
    {Activation::relu, "relu", [](double x) { return x > 0 ? x : 0; },
     [](double y) { return y > 0 ? 1. : 0; }},
    {Activation::tanh, "tanh", [](double x) { return std::tanh(x); },
     [](double y) { return 1 - y * y; }},
    {Activation::sigmoid, "sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); },
     [](double y) { return y * (1 - y); }}};

const Activated& find(Activation activation) {
  return *std::find_if(std::begin(kActivations), std::end(kActivations),
                       [=](const Activated& each) { return each.activation == activation; });
}

Sample matmul_sample(bool ta, bool tb, const char* how, Shape a, Shape b) {
  return of_any_shape(
      matmul_op, std::string(how) + (ta ? ", a transposed" : "") + (tb ? ", b transposed" : ""),
      {{a}, {b}}, EBB_CALL(matmul(in[0], in[1], {.transpose_a = ta, .transpose_b = tb})));
}

// Sample of dense_backward. The bits of `wanted` are dx, dw and db.
Sample dense_backward_sample(unsigned wanted, Shape x, Shape da) {
  // Only gradient rules call it, on nodes whose dtypes and shapes were checked.
  return moving_sample(
      dense_backward_op,
      "wanted " + std::to_string(wanted) + (x.rank() > 2 ? ", on sequences" : ""),
      {{x}, {{3, 4}}, {da}},
      [wanted](const Tensors& in) { return wanted_of(dense_backward_op, in, {}, wanted); }, true);
}

// A matrix of rows x columns over `values`: row-major, or column-major if `transposed`.
struct Matrix {
  const std::vector<double>& values;
  std::int64_t rows, columns;
  bool transposed = false;

  double operator()(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(transposed ? j * rows + i : i * columns + j)];
  }
};

Array product(const Matrix& a, const Matrix& b) {
  Array out({a.rows, b.columns});
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < b.columns; ++j)
      for (std::int64_t k = 0; k < a.columns; ++k) out[i * b.columns + j] += a(i, k) * b(k, j);
  return out;
}

Arrays matmul_reference(const Application& a) {
  const auto& attributes = a.attribute<MatmulAttributes>();
  const std::int64_t depth = a[0].shape[attributes.transpose_a ? -2 : -1];
  Array out(a.outputs[0].shape);
  for_each_index(out.shape, [&](const Index& index) {
    const std::size_t row = index.size() - 2, column = index.size() - 1;
    double sum = 0;
    for (std::int64_t k = 0; k < depth; ++k) {
      Index first = index, second = index;
      first[column] = second[row] = k;
      if (attributes.transpose_a) std::swap(first[row], first[column]);
      if (attributes.transpose_b) std::swap(second[row], second[column]);
      sum += a[0][position(a[0].shape, first)] * a[1][position(a[1].shape, second)];
    }
    out[position(out.shape, index)] = sum;
  });
  return {out};
}

// Number of rows when all axes but the last are joined.
std::int64_t rows_of(Shape shape) {
  shape.set(-1, 1);
  return shape.elements();
}

Arrays dense_reference(const Application& a) {
  const auto& attributes = a.attribute<DenseAttributes>();
  const std::int64_t in = a[1].shape[0], out = a[1].shape[1];
  Array y = product({a[0].values, rows_of(a[0].shape), in}, {a[1].values, in, out});
  for (std::int64_t i = 0; i < y.elements(); ++i)
    y[i] = find(attributes.activation).of(y[i] + (attributes.bias ? a[2][i % out] : 0));
  y.shape = a[0].shape;
  y.shape.set(-1, out);
  return {y};
}

Arrays activation_backward_reference(const Application& a) {
  Array da = a[0];
  for (std::int64_t i = 0; i < da.elements(); ++i)
    da[i] *= find(a.attribute<ActivationAttributes>().activation).slope(a[1][i]);
  return {da};
}

// Computes dx, dw and db from x, w and da.
Arrays dense_backward_reference(const Application& a) {
  const std::int64_t in = a[1].shape[0], out = a[1].shape[1], rows = rows_of(a[0].shape);
  const std::vector<double>& da = a[2].values;
  Array dx = product({da, rows, out}, {a[1].values, out, in, true});
  dx.shape = a[0].shape;
  const Array dw = product({a[0].values, in, rows, true}, {da, rows, out});
  Array db({out});
  for (std::size_t i = 0; i < da.size(); ++i) db.values[i % db.values.size()] += da[i];
  return {dx, dw, db};
}

}  // namespace

void linear_family(std::vector<Sample>& samples, References& references, DType dtype) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const auto add = [&](const char* how, std::initializer_list<std::int64_t> batch_a, Shape a,
                           std::initializer_list<std::int64_t> batch_b, Shape b) {
        if (ta) a = {a.dim(1), a.dim(0)};
        if (tb) b = {b.dim(1), b.dim(0)};
        Shape first = batch_a, second = batch_b;
        for (const std::int64_t n : a.dims()) first.push_back(n);
        for (const std::int64_t n : b.dims()) second.push_back(n);
        samples.push_back(matmul_sample(ta, tb, how, first, second));
      };
      add("two matrices", {}, {kOpen, 4}, {}, {4, 5});
      add("a batch of pairs", {kOpen}, {2, 4}, {kOpen}, {4, 3});
      add("a batch by one matrix", {2, kOpen}, {3, 4}, {}, {4, 5});
      if (is_half(dtype)) continue;
      add("one matrix by a batch", {}, {3, 4}, {2, kOpen}, {4, 2});
      if (ta == tb) add("along different axes", {kOpen, 1, 2}, {3, 2}, {3, 1}, {2, 4});
    }
  samples.push_back(matmul_sample(false, false, "two vectors", {kOpen}, {kOpen}));
  samples.push_back(matmul_sample(false, false, "a matrix by a vector", {kOpen, 4}, {4}));
  samples.push_back(matmul_sample(false, true, "a vector by a batch", {4}, {2, kOpen, 4}));

  for (const Activated& each : kActivations) {
    const Activation activation = each.activation;
    const std::string name = each.name;
    const OpDef& op = activation == Activation::none ? dense_op : dense_activated_op;
    samples.push_back(of_any_shape(op, name, {{{kOpen, 3}}, {{3, 4}}, {{4}}},
                                   EBB_CALL(dense(in[0], in[1], in[2], activation))));
    samples.push_back(of_any_shape(op, name + ", without bias, on sequences",
                                   {{{kOpen, 2, 3}}, {{3, 4}}},
                                   EBB_CALL(dense(in[0], in[1], activation))));
    if (activation == Activation::none) continue;
    samples.push_back(of_any_shape(
        activation_backward_op, name, {{{kOpen, 4}}, {{kOpen, 4}, Values::apart_from_zero}},
        applying(activation_backward_op, ActivationAttributes{activation})));
  }
  for (unsigned wanted = 1; wanted < 8; wanted += is_half(dtype) ? 2 : 1)
    samples.push_back(dense_backward_sample(wanted, {kOpen, 3}, {kOpen, 4}));
  samples.push_back(dense_backward_sample(7, {2, kOpen, 3}, {2, kOpen, 4}));

  references.add(matmul_op, matmul_reference);
  for (const OpDef* op : {&dense_op, &dense_activated_op}) references.add(*op, dense_reference);
  references.add(dense_backward_op, dense_backward_reference);
  references.add(activation_backward_op, activation_backward_reference);
}

}  // namespace ebb::tests
