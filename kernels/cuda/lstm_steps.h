// What both directions of a composed LSTM do with memory, products and the stream.
#pragma once
#include "ebb/kernels/cuda/host/lstm_layout.h"
#include "ebb/kernels/cuda/launch.h"
#include "ebb/kernels/cuda/lstm_cell.h"
#include "ebb/kernels/cuda/product.h"

namespace ebb::cuda {

// Goes on until something fails; the rest is then left out.
#define EBB_TRY(expression)                               \
  if (const Status status = (expression); !status.ok()) { \
    return status;                                        \
  }

template <class T>
StepRows<T> rows_at(const Steps<T>& steps, std::int64_t t) noexcept {
  return {steps.at(t), steps.row};
}

inline Status clear(cudaStream_t stream, void* data, std::size_t bytes) noexcept {
  if (data == nullptr || bytes == 0) return {};
  return answer(cudaMemsetAsync(data, 0, bytes, stream), "memory could not be cleared");
}
// A null `from` counts as zeros, a null `to` is left alone.
inline Status copy(cudaStream_t stream, void* to, const void* from, std::size_t bytes) noexcept {
  if (from == nullptr) return clear(stream, to, bytes);
  if (to == nullptr || bytes == 0) return {};
  return answer(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
                "memory could not be copied");
}

// What rows of so many elements are aligned to, where the first one is to 16 bytes.
inline std::size_t row_alignment(std::int64_t elements, DType dtype) noexcept {
  const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(dtype);
  return bytes == 0 ? 16 : std::min<std::size_t>(16, bytes & (~bytes + 1));
}

}  // namespace ebb::cuda
