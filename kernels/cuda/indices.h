// Shared by kernels that choose by index.
#pragma once
#include <cuda_runtime.h>

#include "ebb/core/kernels/kernel.h"

namespace ebb::cuda {

// Calls f with a pointer to the indices in their own type.
template <class F>
Status for_indices(const Buffer& indices, const F& f) noexcept {
  if (indices.spec.dtype == DType::i32) return f(indices.as<const std::int32_t>());
  if (indices.spec.dtype == DType::i64) return f(indices.as<const std::int64_t>());
  return Status::refuse("has no kernel for indices of this dtype");
}

// A word that repeats the byte.
template <class W>
__device__ inline W word_of(unsigned byte) {
  return static_cast<W>(static_cast<W>(~W{}) / 255 * byte);
}
template <>
__device__ inline int4 word_of<int4>(unsigned byte) {
  const auto part = static_cast<int>(word_of<std::uint32_t>(byte));
  return {part, part, part, part};
}

}  // namespace ebb::cuda
