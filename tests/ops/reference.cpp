#include "ebb/tests/ops/reference.h"

#include <algorithm>

#include "ebb/tests/ops/samples.h"

namespace ebb::tests {

std::vector<Reference> all_references() {
  std::vector<Reference> references;
  for (const Sample& sample : all_samples(DType::f64)) {
    const bool known =
        std::any_of(references.begin(), references.end(),
                    [&](const Reference& reference) { return reference.op == sample.op; });
    if (sample.reference && !known) references.push_back({sample.op, sample.reference});
  }
  add_reduce_references(references);
  add_linear_references(references);
  add_loss_references(references);
  add_norm_references(references);
  add_random_references(references);
  add_lstm_references(references);
  add_shape_references(references);
  add_index_references(references);
  add_layout_references(references);
  add_update_references(references);
  add_memory_figure_references(references);
  add_optim_references(references);
  return references;
}

Array map(const Array& x, const std::function<double(double)>& f) {
  Array y(x.shape);
  for (std::int64_t i = 0; i < x.elements(); ++i) y[i] = f(x[i]);
  return y;
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
