// From a dtype to a type, and what is computed in for it.
#pragma once
#include "ebb/core/base/dtype.h"
#include "ebb/core/kernels/status.h"

namespace ebb::cuda {

// What a value of type T is computed with and summed in.
template <class T>
struct AccumulateOf {
  using type = T;
};
template <class T>
using Accumulate = typename AccumulateOf<T>::type;

// Calls f(T{}) with the type of the dtype, and answers what it answers.
template <class F>
Status for_floating(DType dtype, const F& f) noexcept {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    default:
      return Status::refuse("no kernel for this dtype");
  }
}

// The same for two or three operands, each of its own dtype.
template <class F>
Status for_floating(DType first, DType second, const F& f) noexcept {
  return for_floating(
      first, [&](auto a) { return for_floating(second, [&](auto b) { return f(a, b); }); });
}
template <class F>
Status for_floating(DType first, DType second, DType third, const F& f) noexcept {
  return for_floating(first, second, [&](auto a, auto b) {
    return for_floating(third, [&](auto c) { return f(a, b, c); });
  });
}

}  // namespace ebb::cuda
