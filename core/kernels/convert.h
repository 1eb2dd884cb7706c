#pragma once
#include <cstring>
#include <limits>
#include <type_traits>

#include "ebb/core/base/dtype.h"
#include "ebb/core/base/half.h"

namespace ebb {

// Dtypes: unless a kernel says otherwise, its floating operands have one dtype. f16 and bf16 are
// widened to float when they are read. Arithmetic on them, sums, values kept within a kernel and
// the numbers of attributes are float (or double). A result is rounded once, to nearest even, when
// it is stored (core/base/half.h).

// NaN becomes 0, a number out of range the nearest integer: bad data must not be undefined
// behaviour.
template <class To>
constexpr To to_integer(double value) noexcept {
  constexpr double kLow = static_cast<double>(std::numeric_limits<To>::min());
  constexpr double kHigh = static_cast<double>(std::numeric_limits<To>::max());
  if (!(value == value)) return 0;
  if (value <= kLow) return std::numeric_limits<To>::min();
  if (value >= kHigh) return std::numeric_limits<To>::max();
  return static_cast<To>(value);
}

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// Calls body with a value of the dtype's C++ type; on the host.
template <class Body>
constexpr decltype(auto) with_type_of(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::f64:
      return body(double{});
    case DType::f16:
      return body(Float16{});
    case DType::bf16:
      return body(BFloat16{});
    case DType::i32:
      return body(std::int32_t{});
    case DType::i64:
      return body(std::int64_t{});
    case DType::u8:
      return body(std::uint8_t{});
    case DType::boolean:
      return body(bool{});
    case DType::f32:
      break;
  }
  return body(float{});
}

template <class To, class From>
constexpr To convert(From value) noexcept {
  if constexpr (kIsHalf<From>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (kIsHalf<To>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return to_integer<To>(static_cast<double>(value));
  } else {
    return static_cast<To>(value);
  }
}

// The bytes of a number as an element of the dtype, in the first bytes of a word.
inline std::uint64_t element_of(DType dtype, double number) noexcept {
  std::uint64_t word = 0;
  with_type_of(dtype, [&](auto type) {
    const auto element = convert<decltype(type)>(number);
    std::memcpy(&word, &element, sizeof(element));
  });
  return word;
}

}  // namespace ebb
