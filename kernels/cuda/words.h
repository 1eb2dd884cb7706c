// Moves memory of any dtype in words as wide as its addresses and sizes allow; indices of any
// dtype.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "ebb/core/kernels/kernel.h"

namespace ebb::cuda {

// Calls f with the widest word of 16, 8, 4, 2 or 1 bytes that divides `unit`, the bytes moved as a
// whole, and that all addresses are aligned to.
template <class F>
Status with_words(std::size_t unit, std::initializer_list<const void*> addresses,
                  const F& f) noexcept {
  std::uintptr_t bits = unit;
  for (const void* address : addresses) bits |= reinterpret_cast<std::uintptr_t>(address);
  if (bits % 16 == 0) return f(int4{});
  if (bits % 8 == 0) return f(std::uint64_t{});
  if (bits % 4 == 0) return f(std::uint32_t{});
  if (bits % 2 == 0) return f(std::uint16_t{});
  return f(std::uint8_t{});
}

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
