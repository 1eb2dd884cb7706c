#include "ebb/tests/ops/reference.h"

#include <algorithm>

namespace ebb::tests {

Array map(const Array& x, const std::function<double(double)>& f) {
  Array y(x.shape);
  for (std::int64_t i = 0; i < x.elements(); ++i) y[i] = f(x[i]);
  return y;
}

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

Index without_axes(const Index& index, std::uint64_t axes, bool keep) {
  Index left;
  for (std::size_t axis = 0; axis < index.size(); ++axis) {
    if ((axes >> axis & 1) == 0)
      left.push_back(index[axis]);
    else if (keep)
      left.push_back(0);
  }
  return left;
}

void for_each_index(const Shape& shape, const std::function<void(const Index&)>& body) {
  if (shape.elements() == 0) return;
  Index index(static_cast<std::size_t>(shape.rank()));
  while (true) {
    body(index);
    int axis = shape.rank() - 1;
    for (; axis >= 0; --axis) {
      std::int64_t& i = index[static_cast<std::size_t>(axis)];
      if (++i < shape[axis]) break;
      i = 0;
    }
    if (axis < 0) return;
  }
}

std::int64_t position(const Shape& shape, const Index& index) {
  const std::size_t missing = index.size() - static_cast<std::size_t>(shape.rank());
  std::int64_t at = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t i = index[missing + static_cast<std::size_t>(axis)];
    at = at * shape[axis] + (shape[axis] == 1 ? 0 : i);
  }
  return at;
}

}  // namespace ebb::tests
