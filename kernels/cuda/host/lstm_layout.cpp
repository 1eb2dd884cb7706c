#include "ebb/kernels/cuda/host/lstm_layout.h"

namespace ebb::cuda {

LstmForwardProducts::LstmForwardProducts(const LstmSizes& size, bool sequence) noexcept {
  if (size.rows() == 0) return;
  const auto input = [&](std::int64_t width) {
    return dense_product(size.dtype, size.rows(), size.gates(), width);
  };
  const auto step = [&](std::int64_t hidden_stride) {
    ProductShape shape = dense_product(size.dtype, size.batch, size.gates(), size.hidden);
    shape.a_stride = hidden_stride;
    shape.c_stride = size.time * size.gates();
    return shape;
  };
  shapes[kFirstInput] = input(size.in);
  if (size.layers > 1) shapes[kInput] = input(size.hidden);
  if (size.has_state || !sequence) shapes[kFirstStep] = step(size.hidden);
  shapes[kStep] = step(size.time * size.hidden);
}

LstmBackwardProducts::LstmBackwardProducts(const LstmSizes& size) noexcept {
  if (size.rows() == 0) return;
  const DType dtype = size.dtype;
  shapes[kHidden] = dense_product(dtype, size.batch, size.hidden, size.gates(), false, true);
  shapes[kHidden].a_stride = size.time * size.gates();
  if (size.has_state) {
    shapes[kFirstRecurrent] = dense_product(dtype, size.hidden, size.gates(), size.batch, true);
    shapes[kFirstRecurrent].b_stride = size.time * size.gates();
  }
  shapes[kRecurrent] = dense_product(dtype, size.hidden, size.gates(), size.rows() - 1, true);
  shapes[kFirstWeight] = dense_product(dtype, size.in, size.gates(), size.rows(), true);
  shapes[kFirstInput] = dense_product(dtype, size.rows(), size.in, size.gates(), false, true);
  if (size.layers == 1) return;
  shapes[kWeight] = dense_product(dtype, size.hidden, size.gates(), size.rows(), true);
  shapes[kInput] = dense_product(dtype, size.rows(), size.hidden, size.gates(), false, true);
}

std::size_t largest_bytes(std::span<const ProductShape> shapes,
                          const memory::Profile* profile) noexcept {
  std::size_t bytes = 0;
  for (const ProductShape& shape : shapes) bytes = std::max(bytes, product_bytes(shape, profile));
  return bytes;
}

}  // namespace ebb::cuda
