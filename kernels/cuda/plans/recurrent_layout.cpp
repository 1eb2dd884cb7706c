#include "ebb/kernels/cuda/plans/recurrent_layout.h"

namespace ebb::cuda {

RecurrentForwardProducts::RecurrentForwardProducts(const RecurrentSizes& size, bool keep,
                                                   bool sequence) noexcept {
  if (size.rows() == 0) return;
  const auto input = [&](std::int64_t width) {
    ProductShape shape = dense_product(size.dtype, size.rows(), size.columns(), width);
    shape.c_stride = gate_row(size, keep);
    return shape;
  };
  const auto step = [&](std::int64_t hidden_stride) {
    ProductShape shape = dense_product(size.dtype, size.batch, size.columns(), size.hidden);
    shape.a_stride = hidden_stride;
    if (size.has_cell) shape.c_stride = size.time * size.gates();  // among the gates
    return shape;
  };
  shapes[kFirstInput] = input(size.in);
  if (size.layers > 1) shapes[kInput] = input(size.hidden);
  if (size.has_state || !sequence) shapes[kFirstStep] = step(size.hidden);
  shapes[kStep] = step(size.time * size.hidden);
}

RecurrentBackwardProducts::RecurrentBackwardProducts(const RecurrentSizes& size) noexcept {
  if (size.rows() == 0) return;
  const DType dtype = size.dtype;
  const std::int64_t columns = size.columns(), gates = size.gates();
  shapes[kHidden] = dense_product(dtype, size.batch, size.hidden, columns, false, true);
  shapes[kHidden].a_stride = size.time * gates;
  if (size.has_state) {
    shapes[kFirstRecurrent] = dense_product(dtype, size.hidden, columns, size.batch, true);
    shapes[kFirstRecurrent].b_stride = size.time * gates;
  }
  shapes[kRecurrent] = dense_product(dtype, size.hidden, columns, size.rows() - 1, true);
  shapes[kRecurrent].b_stride = gates;
  // A product for some columns of W. Its gradient's columns are as wide apart as W's, its gates' as
  // all gates.
  const auto weight = [&](std::int64_t width, std::int64_t part) {
    ProductShape shape = dense_product(dtype, width, part, size.rows(), true);
    shape.b_stride = gates;
    shape.c_stride = columns;
    return shape;
  };
  const auto input = [&](std::int64_t width, std::int64_t part) {
    ProductShape shape = dense_product(dtype, size.rows(), width, part, false, true);
    shape.a_stride = gates;
    shape.b_stride = columns;
    return shape;
  };
  const std::int64_t part = size.has_cell ? columns : 2 * size.hidden;
  shapes[kFirstWeight] = weight(size.in, part);
  shapes[kFirstInput] = input(size.in, part);
  if (!size.has_cell) {
    shapes[kFirstWeightOfN] = weight(size.in, size.hidden);
    shapes[kFirstInputOfN] = input(size.in, size.hidden);
  }
  if (size.layers == 1) return;
  shapes[kWeight] = weight(size.hidden, part);
  shapes[kInput] = input(size.hidden, part);
  if (size.has_cell) return;
  shapes[kWeightOfN] = weight(size.hidden, size.hidden);
  shapes[kInputOfN] = input(size.hidden, size.hidden);
}

std::size_t largest_bytes(std::span<const ProductShape> shapes,
                          const memory::Profile* profile) noexcept {
  std::size_t bytes = 0;
  for (const ProductShape& shape : shapes) bytes = std::max(bytes, product_bytes(shape, profile));
  return bytes;
}

}  // namespace ebb::cuda
