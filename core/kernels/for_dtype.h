// Calls a function with a value of a dtype's C++ type, for kernels of both devices.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ebb/core/base/dtype.h"
#include "ebb/core/base/half.h"
#include "ebb/core/kernels/status.h"

namespace ebb {

inline constexpr Status kNoKernel = Status::refuse("has no kernel for this dtype");

namespace detail {

template <class T, class F>
Status call_with(T value, const F& f) {
  if constexpr (std::is_void_v<decltype(f(value))>) {
    f(value);
    return {};
  } else {
    return f(value);
  }
}

}  // namespace detail

// Each calls f(T{}) and returns its status, or done where f returns nothing. A dtype without a type
// here is refused.

// f32 and f64.
template <class F>
Status for_wide(DType dtype, const F& f) {
  if (dtype == DType::f32) return detail::call_with(float{}, f);
  return dtype == DType::f64 ? detail::call_with(double{}, f) : kNoKernel;
}
// f32, f64, f16 and bf16.
template <class F>
Status for_floating(DType dtype, const F& f) {
  if (dtype == DType::f16) return detail::call_with(Float16{}, f);
  return dtype == DType::bf16 ? detail::call_with(BFloat16{}, f) : for_wide(dtype, f);
}
// i32, i64 and u8.
template <class F>
Status for_integer(DType dtype, const F& f) {
  if (dtype == DType::i32) return detail::call_with(std::int32_t{}, f);
  if (dtype == DType::i64) return detail::call_with(std::int64_t{}, f);
  return dtype == DType::u8 ? detail::call_with(std::uint8_t{}, f) : kNoKernel;
}
// i32, i64 and u8, and bool as the u8 it is stored as: 0 or 1.
template <class F>
Status for_stored_integer(DType dtype, const F& f) {
  return for_integer(dtype == DType::boolean ? DType::u8 : dtype, f);
}
// Every dtype, bool as u8.
template <class F>
Status for_stored(DType dtype, const F& f) {
  return is_floating(dtype) ? for_floating(dtype, f) : for_stored_integer(dtype, f);
}
// Every dtype.
template <class F>
Status for_number(DType dtype, const F& f) {
  return dtype == DType::boolean ? detail::call_with(bool{}, f) : for_stored(dtype, f);
}
// Every dtype, as an unsigned integer of its size.
template <class F>
Status for_word(DType dtype, const F& f) {
  const std::size_t bytes = size_of(dtype);
  if (bytes == 1) return detail::call_with(std::uint8_t{}, f);
  if (bytes == 2) return detail::call_with(std::uint16_t{}, f);
  return bytes == 4 ? detail::call_with(std::uint32_t{}, f) : detail::call_with(std::uint64_t{}, f);
}

}  // namespace ebb
