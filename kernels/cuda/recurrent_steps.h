// What both directions of an LSTM need to go through its steps.
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

// What rows of so many elements are aligned to, where the first one is to 16 bytes.
inline std::size_t row_alignment(std::int64_t elements, DType dtype) noexcept {
  const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(dtype);
  return bytes == 0 ? 16 : std::min<std::size_t>(16, bytes & (~bytes + 1));
}

}  // namespace ebb::cuda
