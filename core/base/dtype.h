#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ebb {

// Element types of tensors. Arithmetic on f16 and bf16 is done in float; arithmetic on integers
// wraps around. Types that are not floating serve as indices, counts and flags.
enum class DType : std::uint8_t { f32, f64, f16, bf16, i32, i64, u8, boolean };

constexpr std::size_t size_of(DType type) noexcept {
  constexpr std::size_t sizes[] = {4, 8, 2, 2, 4, 8, 1, 1};
  return sizes[static_cast<std::size_t>(type)];
}

constexpr const char* name(DType type) noexcept {
  constexpr const char* names[] = {"f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool"};
  return names[static_cast<std::size_t>(type)];
}

constexpr bool is_floating(DType type) noexcept { return type <= DType::bf16; }
// Stored in 16 bits, computed in float.
constexpr bool is_half(DType type) noexcept { return type == DType::f16 || type == DType::bf16; }

struct Float16;   // core/base/half.h
struct BFloat16;  // core/base/half.h

namespace detail {
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> : std::integral_constant<DType, DType::f32> {};
template <>
struct DTypeOf<double> : std::integral_constant<DType, DType::f64> {};
template <>
struct DTypeOf<Float16> : std::integral_constant<DType, DType::f16> {};
template <>
struct DTypeOf<BFloat16> : std::integral_constant<DType, DType::bf16> {};
template <>
struct DTypeOf<std::int32_t> : std::integral_constant<DType, DType::i32> {};
template <>
struct DTypeOf<std::int64_t> : std::integral_constant<DType, DType::i64> {};
template <>
struct DTypeOf<std::uint8_t> : std::integral_constant<DType, DType::u8> {};
template <>
struct DTypeOf<bool> : std::integral_constant<DType, DType::boolean> {};
}  // namespace detail

// The DType of a C++ type: dtype_of<float> is DType::f32.
template <class T>
inline constexpr DType dtype_of = detail::DTypeOf<T>::value;

}  // namespace ebb
