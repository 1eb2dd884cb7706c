// Shared by forward and backward of the composed form.
#pragma once
#include "ebb/kernels/cuda/plans/recurrent_layout.h"
#include "ebb/kernels/cuda/product.h"
#include "ebb/kernels/cuda/recurrent_cell.h"
#include "ebb/kernels/cuda/stream_memory.h"

namespace ebb::cuda {

template <class T>
StepRows<T> rows_at(const Steps<T>& steps, std::int64_t t) noexcept {
  return {steps.at(t), steps.row};
}

// Alignment in bytes of rows of so many elements, if the first one is aligned to 16 bytes.
inline std::size_t row_alignment(std::int64_t elements, DType dtype) noexcept {
  const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(dtype);
  return bytes == 0 ? 16 : std::min<std::size_t>(16, bytes & (~bytes + 1));
}

}  // namespace ebb::cuda
