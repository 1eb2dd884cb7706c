#include <cmath>
#include <utility>

#include "ebb/core/ops/linear.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

// out[m, n] of a [m, k] and b [k, n], read through their strides, which may be swapped.
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

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::relu:
      return x > 0 ? x : 0;
    case Activation::tanh:
      return std::tanh(x);
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    default:
      break;
  }
  return x;
}

// Of the activation, from what it gave.
double derivative(Activation activation, double y) {
  switch (activation) {
    case Activation::relu:
      return y > 0 ? 1 : 0;
    case Activation::tanh:
      return 1 - y * y;
    case Activation::sigmoid:
      return y * (1 - y);
    default:
      break;
  }
  return 1;
}

// As many indices as the shape has axes; position() takes care of those that broadcast.
Index last(const Index& index, const Shape& shape) {
  return {index.end() - shape.rank(), index.end()};
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
      sum += a[0][position(a[0].shape, last(first, a[0].shape))] *
             a[1][position(a[1].shape, last(second, a[1].shape))];
    }
    out[position(out.shape, index)] = sum;
  });
  return {out};
}

// All axes but the last one, as one.
std::int64_t rows_of(Shape shape) {
  shape.set(-1, 1);
  return shape.elements();
}

Arrays dense_reference(const Application& a) {
  const auto& attributes = a.attribute<DenseAttributes>();
  const std::int64_t in = a[1].shape[0], out = a[1].shape[1];
  Array y = product({a[0].values, rows_of(a[0].shape), in}, {a[1].values, in, out});
  for (std::int64_t i = 0; i < y.elements(); ++i)
    y[i] = activated(attributes.activation, y[i] + (attributes.bias ? a[2][i % out] : 0));
  y.shape = a[0].shape;
  y.shape.set(-1, out);
  return {y};
}

Arrays activation_backward_reference(const Application& a) {
  Array da = a[0];
  for (std::int64_t i = 0; i < da.elements(); ++i)
    da[i] *= derivative(a.attribute<ActivationAttributes>().activation, a[1][i]);
  return {da};
}

// dx, dw, db from x, w, da.
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

void add_linear_references(std::vector<Reference>& references) {
  references.push_back({&matmul_op, matmul_reference});
  for (const OpDef* op : {&dense_op, &dense_activated_op})
    references.push_back({op, dense_reference});
  references.push_back({&dense_backward_op, dense_backward_reference});
  references.push_back({&activation_backward_op, activation_backward_reference});
}

}  // namespace ebb::tests
