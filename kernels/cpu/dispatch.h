#pragma once
#include "ebb/core/base/dtype.h"
#include "ebb/core/base/half.h"
#include "ebb/core/kernels/status.h"

namespace ebb::cpu {

inline constexpr Status kUnsupportedDType = Status::refuse("has no kernel for this dtype");

// Calls body with a value of the C++ type of f32 or f64, and refuses every other dtype.
template <class Body>
inline Status for_floating(DType type, const Body& body) {
  if (type == DType::f32) {
    body(float{});
  } else if (type == DType::f64) {
    body(double{});
  } else {
    return kUnsupportedDType;
  }
  return {};
}

// Calls body with a value of the C++ type of any floating dtype. Types of 16 bits only store;
// Computed (kernels/cpu/vector_half.h) is the type to compute in.
template <class Body>
inline Status for_stored(DType type, const Body& body) {
  if (!is_half(type)) return for_floating(type, body);
  if (type == DType::bf16) {
    body(BFloat16{});
  } else {
    body(Float16{});
  }
  return {};
}

// for_floating for two or three operands, each of its own dtype.
template <class Body>
inline Status for_floating(DType first, DType second, const Body& body) {
  Status inner;
  const Status outer = for_floating(
      first, [&](auto a) { inner = for_floating(second, [&](auto b) { body(a, b); }); });
  return outer.ok() ? inner : outer;
}
template <class Body>
inline Status for_floating(DType first, DType second, DType third, const Body& body) {
  Status inner;
  const Status outer = for_floating(first, second, [&](auto a, auto b) {
    inner = for_floating(third, [&](auto c) { body(a, b, c); });
  });
  return outer.ok() ? inner : outer;
}

}  // namespace ebb::cpu
