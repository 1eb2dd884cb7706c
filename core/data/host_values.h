#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::detail {

// Memory on the host for the values of a data set; not initialised. Throws OutOfMemory.
inline Tensor allocate_input(const Spec& spec, const char* what) {
  return allocate(spec, Device::cpu(), memory::Category::input, {what});
}

template <class T>
T* values_of(const Tensor& tensor) noexcept {
  return static_cast<T*>(data(tensor));
}

// `spec` with another leading dimension.
inline Spec with_rows(Spec spec, std::int64_t rows) noexcept {
  spec.shape.set(0, rows);
  return spec;
}

// Copies the rows of these indices one behind the other.
inline void gather_rows(const Tensor& from, std::span<const std::int64_t> rows, void* to) noexcept {
  const std::size_t bytes = with_rows(from.impl()->spec, 1).bytes();
  if (bytes == 0) return;
  const std::byte* const source = values_of<std::byte>(from);
  auto* out = static_cast<std::byte*>(to);
  for (const std::int64_t row : rows) {
    std::memcpy(out, source + static_cast<std::size_t>(row) * bytes, bytes);
    out += bytes;
  }
}

}  // namespace ebb::detail
