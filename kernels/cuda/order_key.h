// Maps numbers to integer keys of the same order, so that one kernel serves all comparisons.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "ebb/core/base/dtype.h"
#include "ebb/kernels/cuda/dispatch.h"

namespace ebb::cuda {

// A key for each element: the larger the key, the earlier the element stands. Largest elements come
// first, or smallest if `is_smallest`. NaN has the largest key of all; 0 and -0 have the same.
inline constexpr std::uint64_t kKeyOfNaN = ~std::uint64_t{0};

__device__ inline std::uint64_t order_key(std::int64_t x, bool is_smallest) {
  const std::uint64_t key = static_cast<std::uint64_t>(x) ^ std::uint64_t{1} << 63;
  return is_smallest ? ~key : key;
}
__device__ inline std::uint64_t order_key(float x, bool is_smallest) {
  if (x != x) return kKeyOfNaN;
  const auto bits = static_cast<std::uint32_t>(__float_as_int(x + 0.f));
  const std::uint64_t key = (bits >> 31) != 0 ? ~bits : bits | 1u << 31;
  return is_smallest ? 0xFFFFFFFFu - key : key;
}
__device__ inline std::uint64_t order_key(double x, bool is_smallest) {
  if (x != x) return kKeyOfNaN;
  const auto bits = static_cast<std::uint64_t>(__double_as_longlong(x + 0.0));
  const std::uint64_t key = (bits >> 63) != 0 ? ~bits : bits | std::uint64_t{1} << 63;
  return is_smallest ? ~key : key;
}
template <class T>
__device__ inline std::uint64_t key_of(T x, bool is_smallest) {
  if constexpr (std::is_integral_v<T>)
    return order_key(static_cast<std::int64_t>(x), is_smallest);
  else
    return order_key(static_cast<Accumulate<T>>(x), is_smallest);
}

// The first of some elements: its key and its position. Of equal keys the smaller position comes
// first.
struct First {
  std::uint64_t key;
  std::int64_t position;

  __device__ static First none() { return {0, 0x7FFFFFFFFFFFFFFF}; }
  __device__ bool is_before(const First& other) const {
    return key > other.key || (key == other.key && position < other.position);
  }
};

}  // namespace ebb::cuda
