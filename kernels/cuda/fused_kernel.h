// What a kernel that runs a chain of pointwise operators is made of. plans/fused_text.cpp writes
// the rest, and NVRTC compiles it with this header, which therefore includes little.
#pragma once
#include <cstdint>

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/functors/families.h"
#include "ebb/core/kernels/functors/on_integers.h"
#include "ebb/kernels/cuda/pack.h"
#include "ebb/kernels/cuda/plans/sum_plan.h"

namespace ebb::cuda {

// Elements that a thread computes at once.
inline constexpr int kFusedLanes = 4;

// The kernel's only parameter.
struct FusedArguments {
  void* out;
  const void* inputs[20];
  double numbers[40];  // beside tensors, and of functors
  std::int64_t count;
  std::uint32_t takes_packs;  // whether all arrays do
  std::uint32_t zero;         // 0, which compilers do not know
  SumPlan plan;               // of a sum behind the chain
  double divisor;
  double* parts;  // where the plan has several
};

// The type that values of type T are computed in.
template <class T>
using FusedValue = std::conditional_t<kIsHalf<T>, float,
                                      std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>;

template <class T>
__device__ inline FusedValue<T> fused_value(T x) {
  return static_cast<FusedValue<T>>(x);
}

// The result of a step in T, as the next one would read it from memory: the compiler must not see
// that it is a product, or it would add to it without rounding.
template <class T, class X>
__device__ inline FusedValue<T> fused_result(X x, std::uint32_t zero) {
  if constexpr (kIsHalf<T>)
    return static_cast<float>(T(x));
  else if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ zero);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) ^ zero);
  else
    return x;
}

// Reads the elements of an array of T that belong to elements i to i + 3 of the result, of which
// `rest` exist. place(i) is an element's place in the array. `whole`: they are a pack.
template <class T, class Index, class Place>
__device__ inline void fused_read(FusedValue<T> (&x)[kFusedLanes], const void* array, Index i,
                                  Index rest, bool whole, const Place& place) {
  const auto* const from = static_cast<const T*>(array);
  if (whole) {
    const Pack<T, kFusedLanes> pack = load<kFusedLanes>(from + place(i));
    for (int j = 0; j < kFusedLanes; ++j) x[j] = fused_value(pack[j]);
  } else {
    for (int j = 0; j < kFusedLanes; ++j) {
      const auto lane = static_cast<Index>(j);
      x[j] = fused_value(from[place(i + (lane < rest ? lane : 0))]);
    }
  }
}
// The same for an element that serves all four.
template <class T, class Index>
__device__ inline void fused_read_one(FusedValue<T> (&x)[kFusedLanes], const void* array,
                                      Index place) {
  const FusedValue<T> one = fused_value(static_cast<const T*>(array)[place]);
  for (int j = 0; j < kFusedLanes; ++j) x[j] = one;
}

template <class T, class Index>
__device__ inline void fused_write(void* array, const FusedValue<T> (&x)[kFusedLanes], Index i,
                                   Index rest, bool whole) {
  auto* const to = static_cast<T*>(array) + i;
  Pack<T, kFusedLanes> pack;
  for (int j = 0; j < kFusedLanes; ++j) pack[j] = static_cast<T>(x[j]);
  if (whole) {
    store(to, pack);
  } else {
    for (int j = 0; j < kFusedLanes; ++j)
      if (static_cast<Index>(j) < rest) to[j] = pack[j];
  }
}

}  // namespace ebb::cuda
