#pragma once
#include "ebb/core/base/dtype.h"
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

}  // namespace ebb::cpu
