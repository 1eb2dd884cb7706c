// Maps numbers to integer keys of the same order, so that one kernel serves all comparisons.
#pragma once
#include <cuda_runtime.h>

#include <bit>
#include <cstdint>
#include <type_traits>

#include "ebb/kernels/cuda/dispatch.h"

namespace ebb::cuda {

// The unsigned integer of T's size.
template <class T>
using Key = std::conditional_t<
    sizeof(T) == 8, std::uint64_t,
    std::conditional_t<sizeof(T) == 4, std::uint32_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;

// A key for each element: the larger the key, the earlier the element stands. Largest elements come
// first, or smallest if `is_smallest`. NaN has the largest key of all; 0 and -0 have the same.
template <class T>
__device__ inline Key<T> key_of(T x, bool is_smallest) {
  constexpr auto kTop = static_cast<Key<T>>(Key<T>{1} << (8 * sizeof(T) - 1));
  auto key = std::bit_cast<Key<T>>(x);
  if constexpr (std::is_integral_v<T>) {
    if (std::is_signed_v<T>) key ^= kTop;
  } else {
    const auto value = static_cast<Accumulate<T>>(x);
    if (value != value) return static_cast<Key<T>>(-1);
    key = (key & kTop) == 0 || key == kTop ? key | kTop : ~key;
  }
  return is_smallest ? static_cast<Key<T>>(~key) : key;
}

}  // namespace ebb::cuda
