#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "ebb/core/data/data_set.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::detail {

// Makes a CPU tensor for values of a data set, written by fill(pointer to T). Memory is tagged with
// the line of the enclosing scope. Throws OutOfMemory.
template <class T, class Fill>
Tensor make_input(const Shape& shape, const char* what, const Fill& fill) {
  Tensor tensor =
      allocate({dtype_of<T>, shape}, Device::cpu(), memory::Category::input, tag(what, entry()));
  tensor.impl()->storage->write(0, tensor.bytes(),
                                [&](void* values) { fill(static_cast<T*>(values)); });
  return tensor;
}

// Throws if a tensor has no values for Tensor::to_vector(): Error, SimulatedRead. To be saved in a
// prediction it needs none.
void require_values(const Tensor& tensor, const char* what, const std::string& which,
                    bool to_be_saved = false);

// Host view of a concrete tensor's values.
inline HostView values_of(const Tensor& tensor) {
  return tensor.impl()->storage->view(tensor.impl()->offset, tensor.bytes());
}

// Replaces the leading dimension of `spec`.
inline Spec with_rows(Spec spec, std::int64_t rows) noexcept {
  spec.shape.set(0, rows);
  return spec;
}

// Rows [first, last) of a concrete tensor, in the same memory and without its history.
inline Tensor rows_of(const Tensor& tensor, std::int64_t first, std::int64_t last) {
  const TensorImpl& impl = *tensor.impl();
  return make_concrete(
      with_rows(impl.spec, last - first), impl.storage,
      impl.offset + static_cast<std::size_t>(first) * with_rows(impl.spec, 1).bytes());
}

// Copies the rows with these indices, row_bytes each, one behind the other.
inline void gather_rows(const std::byte* from, std::size_t row_bytes,
                        std::span<const std::int64_t> rows, void* to) noexcept {
  if (row_bytes == 0) return;
  auto* out = static_cast<std::byte*>(to);
  for (const std::int64_t row : rows) {
    std::memcpy(out, from + static_cast<std::size_t>(row) * row_bytes, row_bytes);
    out += row_bytes;
  }
}

// The scale of `count` values, at least one, `stride` apart.
template <class T>
Scale fit_scale(const T* values, std::size_t count, std::size_t stride = 1) {
  const auto at = [&](std::size_t i) { return static_cast<double>(values[i * stride]); };
  double sum = 0;
  bool constant = true;
  for (std::size_t i = 0; i < count; ++i) {
    sum += at(i);
    constant &= values[i * stride] == values[0];
  }
  // Checked exactly, so that rounding makes no deviation out of equal values.
  if (constant) return {at(0), 1};
  const double mean = sum / static_cast<double>(count);
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) squares += (at(i) - mean) * (at(i) - mean);
  return {mean, std::sqrt(squares / static_cast<double>(count))};
}

}  // namespace ebb::detail
