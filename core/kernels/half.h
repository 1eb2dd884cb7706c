#pragma once
#include <bit>
#include <cstdint>

namespace ebb {

// The upper half of a float, rounded to nearest even; NaN stays NaN.
inline std::uint16_t bfloat_bits(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return 0x7FC0;
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// IEEE's binary16, rounded to nearest even.
inline std::uint16_t half_bits(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u);
  if (magnitude >= 0x47800000u)
    return static_cast<std::uint16_t>(sign | 0x7C00u);  // 2^16 and above
  const std::uint32_t exponent = magnitude >> 23;
  if (exponent < 102) return static_cast<std::uint16_t>(sign);  // below half of the least denormal
  // The 24-bit significand, shifted to where the result's last bit is bit `shift`.
  const std::uint32_t significand = (magnitude & 0x7FFFFFu) | 0x800000u;
  const std::uint32_t shift = exponent < 113 ? 126 - exponent : 13;
  const std::uint32_t base = exponent < 113 ? 0 : (exponent - 113) << 10;
  const std::uint32_t rest = significand & ((1u << shift) - 1), half = 1u << (shift - 1);
  std::uint32_t result = base + (significand >> shift);
  if (rest > half || (rest == half && (result & 1) != 0)) ++result;
  return static_cast<std::uint16_t>(sign | result);
}

}  // namespace ebb
