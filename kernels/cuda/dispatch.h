// Maps a dtype to its type, and to the type it is computed in.
#pragma once
#include "ebb/core/base/dtype.h"
#include "ebb/core/base/half.h"
#include "ebb/core/kernels/status.h"

namespace ebb::cuda {

// The type that values of type T are computed and summed in.
template <class T>
struct AccumulateOf {
  using type = T;
};
template <>
struct AccumulateOf<BFloat16> {
  using type = float;
};
template <>
struct AccumulateOf<Float16> {
  using type = float;
};
template <class T>
using Accumulate = typename AccumulateOf<T>::type;

inline constexpr Status kNoKernel = Status::refuse("has no kernel for this dtype");

// Calls f(T{}) with the type of the dtype and returns its status.
template <class F>
Status for_wide(DType dtype, const F& f) noexcept {
  if (dtype == DType::f32) return f(float{});
  return dtype == DType::f64 ? f(double{}) : kNoKernel;
}
template <class F>
Status for_half(DType dtype, const F& f) noexcept {
  if (dtype == DType::f16) return f(Float16{});
  return dtype == DType::bf16 ? f(BFloat16{}) : kNoKernel;
}
template <class F>
Status for_floating(DType dtype, const F& f) noexcept {
  return is_half(dtype) ? for_half(dtype, f) : for_wide(dtype, f);
}

}  // namespace ebb::cuda
