// Reduces angles by the nearest quarter turn, for sine and cosine of numbers of every size.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "ebb/core/base/host_device.h"

namespace ebb::functors {

// x = quarters pi / 2 + rest, with |rest| at most pi / 4. Quarters count modulo 4.
template <class T>
struct QuarterTurns {
  T rest;
  int quarters;
};

// Below kFarAngle, products of whole quarters and the first two parts of pi / 2 (33 bits each) are
// exact; the last part is the remainder.
inline constexpr double kFarAngle = 0x1p20;
inline constexpr double kQuarter = 0x1.921fb544p0, kQuarterNext = 0x1.0b4611a6p-34,
                        kQuarterLast = 0x1.3198a2e037073p-69;

// Reduces x from 2^20 up by the bits of 2 / pi that matter (after Payne and Hanek, "Radian
// reduction for trigonometric functions", SIGNUM 1983): higher bits make whole turns, lower ones
// too little. NaN for infinities.
EBB_HOST_DEVICE inline QuarterTurns<double> far_quarter_turns(double x) {
  // The bits of 2 / pi behind the point, after a word of zeros.
  static constexpr std::uint64_t kTwoOverPi[] = {
      0,
      0xa2f9836e4e441529u,
      0xfc2757d1f534ddc0u,
      0xdb6295993c439041u,
      0xfe5163abdebbc561u,
      0xb7246e3a424dd2e0u,
      0x06492eea09d1921cu,
      0xfe1deb1cb129a73eu,
      0xe88235f52ebb4484u,
      0xe99c7026b45f7e41u,
      0x3991d639835339f4u,
      0x9c845f8bbdf9283bu,
      0x1ff897ffde05980fu,
      0xef2f118b5a0a6d1fu,
      0x6d367ecf27cb09b7u,
      0x4f463f669e5fea2du,
      0x7527bac7ebe5f17bu,
      0x3d0739f78a5292eau,
      0x6bfb5fb11f8d5d08u,
      0x56033046fc7b6babu,
  };
  __extension__ using Wide = unsigned __int128;
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  if (exponent == 0x7ff) return {x - x, 0};
  const std::uint64_t mantissa = (bits & ((std::uint64_t{1} << 52) - 1)) | std::uint64_t{1} << 52;
  // |x| = mantissa 2^e. Takes 192 bits of 2 / pi; the first makes half a turn with the mantissa's
  // last bit.
  const int first = exponent - 1075 - 2 + 64;
  const int word = first / 64, shift = first % 64;
  std::uint64_t parts[3];
  for (int i = 0; i < 3; ++i)
    parts[i] =
        kTwoOverPi[word + i] << shift | (shift == 0 ? 0 : kTwoOverPi[word + i + 1] >> (64 - shift));
  const Wide low = Wide{mantissa} * parts[2], middle = Wide{mantissa} * parts[1] + (low >> 64);
  const std::uint64_t high = mantissa * parts[0] + static_cast<std::uint64_t>(middle >> 64);
  const auto below = static_cast<std::uint64_t>(middle);
  // The first two bits are quarters. The bits behind them, signed, are a fraction of a quarter.
  const auto fraction = static_cast<std::int64_t>(high << 2 | below >> 62);
  const int quarters = static_cast<int>(high >> 62) + (fraction < 0 ? 1 : 0);
  const double rest =
      (static_cast<double>(fraction) * 0x1p-64 + static_cast<double>(below << 2) * 0x1p-128) *
      (kQuarter + kQuarterNext);
  if (x < 0) return {-rest, -quarters};
  return {rest, quarters};
}

EBB_HOST_DEVICE inline QuarterTurns<double> quarter_turns(double x) {
  if (!(std::fabs(x) < kFarAngle)) return far_quarter_turns(x);
  const double n = std::rint(x * 0x1.45f306dc9c883p-1);
  if (n == 0) return {x, 0};  // -0 stays -0
  return {((x - n * kQuarter) - n * kQuarterNext) - n * kQuarterLast, static_cast<int>(n)};
}
EBB_HOST_DEVICE inline QuarterTurns<float> quarter_turns(float x) {
  if (!(std::fabs(x) < 0x1p15f)) {
    const QuarterTurns<double> turns = quarter_turns(static_cast<double>(x));
    return {static_cast<float>(turns.rest), turns.quarters};
  }
  const float n = std::rint(x * 0x1.45f306p-1f);
  if (n == 0) return {x, 0};
  const float rest = std::fma(-n, 0x1.5110b4p-22f, std::fma(-n, 0x1.921fbp0f, x));
  return {std::fma(-n, 0x1.846988p-48f, rest), static_cast<int>(n)};
}

// Taylor's series, from the last term on.
template <class T>
EBB_HOST_DEVICE T sine(const QuarterTurns<T>& angle) {
  constexpr int kLast = sizeof(T) == 4 ? 10 : 16;
  const T square = angle.rest * angle.rest;
  T y = 1;
  if ((angle.quarters & 1) != 0) {
    for (int k = kLast + 2; k > 0; k -= 2) y = 1 - y * square * (1 / static_cast<T>(k * (k - 1)));
  } else {
    for (int k = kLast; k > 0; k -= 2) y = 1 - y * square * (1 / static_cast<T>(k * (k + 1)));
    y *= angle.rest;
  }
  return (angle.quarters & 2) != 0 ? -y : y;
}
template <class T>
EBB_HOST_DEVICE T sine(T x) {
  return sine(quarter_turns(x));
}
template <class T>
EBB_HOST_DEVICE T cosine(T x) {
  QuarterTurns<T> angle = quarter_turns(x);
  ++angle.quarters;
  return sine(angle);
}
template <class T>
EBB_HOST_DEVICE T tangent(T x) {
  QuarterTurns<T> angle = quarter_turns(x);
  const T y = sine(angle);
  ++angle.quarters;
  return y / sine(angle);
}

}  // namespace ebb::functors
