#pragma once
#include <bit>
#include <cstdint>

#include "ebb/core/base/host_device.h"

namespace ebb {

// Numbers of 16 bits, for storage. Arithmetic is done in float, and results are rounded to nearest
// even when stored. NaN stays NaN.
//
// BFloat16 is the upper half of a float: the same range, 8 bits of significand.
struct BFloat16 {
  std::uint16_t bits;

  BFloat16() = default;
  EBB_HOST_DEVICE explicit constexpr BFloat16(float value) noexcept : bits(round(value)) {}
  EBB_HOST_DEVICE explicit constexpr operator float() const noexcept {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
  }
  static constexpr BFloat16 of_bits(std::uint16_t bits) noexcept {
    return std::bit_cast<BFloat16>(bits);
  }

 private:
  EBB_HOST_DEVICE static constexpr std::uint16_t round(float value) noexcept {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    std::uint16_t rounded;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
    return rounded;
#else
    if (value != value) return 0x7FC0;
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
#endif
  }
};

// IEEE's binary16: 11 bits of significand, up to 65504, down to 2^-24.
struct Float16 {
  std::uint16_t bits;

  Float16() = default;
  EBB_HOST_DEVICE explicit constexpr Float16(float value) noexcept : bits(round(value)) {}
  EBB_HOST_DEVICE explicit constexpr operator float() const noexcept { return widen(bits); }
  static constexpr Float16 of_bits(std::uint16_t bits) noexcept {
    return std::bit_cast<Float16>(bits);
  }

 private:
  EBB_HOST_DEVICE static constexpr std::uint16_t round(float value) noexcept {
#if defined(__CUDA_ARCH__)
    std::uint16_t rounded;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(rounded) : "f"(value));
    return rounded;
#else
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u);
    if (magnitude >= 0x47800000u)
      return static_cast<std::uint16_t>(sign | 0x7C00u);  // 2^16 and above
    const std::uint32_t exponent = magnitude >> 23;
    if (exponent < 102) return static_cast<std::uint16_t>(sign);  // below half the least denormal
    // The 24-bit significand, shifted so that the result's last bit is bit `shift`.
    const std::uint32_t significand = (magnitude & 0x7FFFFFu) | 0x800000u;
    const std::uint32_t shift = exponent < 113 ? 126 - exponent : 13;
    const std::uint32_t base = exponent < 113 ? 0 : (exponent - 113) << 10;
    const std::uint32_t rest = significand & ((1u << shift) - 1), half = 1u << (shift - 1);
    std::uint32_t result = base + (significand >> shift);
    if (rest > half || (rest == half && (result & 1) != 0)) ++result;
    return static_cast<std::uint16_t>(sign | result);
#endif
  }
  EBB_HOST_DEVICE static constexpr float widen(std::uint16_t bits) noexcept {
#if defined(__CUDA_ARCH__)
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#else
    const std::uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7FFFu;
    if (magnitude < 0x400u) {  // zero and denormals: a multiple of 2^-24, which is exact
      const float small = static_cast<float>(magnitude) * 0x1p-24f;
      return sign != 0 ? -small : small;
    }
    const std::uint32_t exponent = magnitude >= 0x7C00u ? 0x7F800000u : 0x38000000u;
    return magnitude >= 0x7C00u ? std::bit_cast<float>(sign | exponent | (magnitude & 0x3FFu) << 13)
                                : std::bit_cast<float>(sign | (exponent + (magnitude << 13)));
#endif
  }
};

}  // namespace ebb
