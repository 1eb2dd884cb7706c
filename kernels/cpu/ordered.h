// For kernels that compare elements of any dtype.
#pragma once
#include <cstdint>

#include "ebb/kernels/cpu/dispatch.h"

namespace ebb::cpu {

template <class T>
constexpr bool is_nan(T x) noexcept {
  return x != x;
}

// Calls body with a value of a type that has the dtype's order: bool as u8. For f16 and bf16, which
// compare as floats, see in_float.h.
template <class Body>
inline Status for_ordered(DType type, const Body& body) {
  switch (type) {
    case DType::f32:
      body(float{});
      return {};
    case DType::f64:
      body(double{});
      return {};
    case DType::i32:
      body(std::int32_t{});
      return {};
    case DType::i64:
      body(std::int64_t{});
      return {};
    case DType::u8:
    case DType::boolean:
      body(std::uint8_t{});
      return {};
    default:
      return kUnsupportedDType;
  }
}

}  // namespace ebb::cpu
