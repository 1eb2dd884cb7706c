#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <iterator>
#include <limits>
#include <numbers>

#include "ebb/core/kernels/functors/host_device.h"
#include "ebb/kernels/cpu/vector_block.h"

// exp, expm1, log, log1p, tanh, sine and cosine of whole blocks: no branches and no tables, every
// lane takes the same instructions. Polynomials are Taylor's, long enough for the last bit.
// Denormals count as zeros. tests/ops/accuracy.cpp holds them to the bounds that
// core/kernels/functors/*.inc state.
namespace ebb::cpu {
namespace detail {

template <class T>
struct Format;
template <>
struct Format<float> {
  static constexpr int kMantissa = 23;
  // The two parts of log(2): n times the first is exact for every exponent n.
  static constexpr float kLog2High = 0x1.62e3p-1f, kLog2Low = 0x1.2fefa2p-17f;
  // exp(kExpLow) is the least normal number, exp(kExpHigh) the largest finite one. tanh rounds to 1
  // from kTanhHigh on.
  static constexpr float kExpLow = -0x1.5d589ep+6f, kExpHigh = 0x1.62e42ep+6f, kTanhHigh = 10;
  static constexpr int kExpTerms = 7, kLogTerms = 4;
};
template <>
struct Format<double> {
  static constexpr int kMantissa = 52;
  static constexpr double kLog2High = 0x1.62e42feep-1, kLog2Low = 0x1.a39ef35793c76p-33;
  static constexpr double kExpLow = -0x1.6232bdd7abcd2p+9, kExpHigh = 0x1.62e42fefa39efp+9,
                          kTanhHigh = 20;
  static constexpr int kExpTerms = 13, kLogTerms = 10;
};

template <class T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();

// Added to a number, it leaves the nearest integer in the low bits (1.5 ulps are worth 2^mantissa).
template <class T>
inline constexpr T kRound = T(1.5) / std::numeric_limits<T>::epsilon();

template <class T>
inline BitVector<T> bits(Vector<T> x) noexcept {
  return std::bit_cast<BitVector<T>>(x);
}
template <class T>
inline Vector<T> from_bits(BitVector<T> x) noexcept {
  return std::bit_cast<Vector<T>>(x);
}

// terms[0] + terms[1] x + terms[2] x^2 + ..
template <class T, class Terms>
inline Vector<T> polynomial(Vector<T> x, const Terms& terms) noexcept {
  std::size_t i = std::size(terms) - 1;
  Vector<T> sum = terms[i] - Vector<T>{};
  while (i-- > 0) sum = sum * x + terms[i];
  return sum;
}

// 1 / first!, 1 / (first + step)!, .., 1 / last!: Taylor's terms of exp, with step 2 of sine and
// cosine. Factorials up to 18! are exact in double.
template <class T, int kFirst, int kLast, int kStep>
inline constexpr auto kInverseFactorials = [] {
  std::array<T, (kLast - kFirst) / kStep + 1> terms{};
  double factorial = 1;
  for (int k = 1; k <= kLast; ++k) {
    factorial *= k;
    if (k >= kFirst && (k - kFirst) % kStep == 0)
      terms[static_cast<std::size_t>((k - kFirst) / kStep)] = static_cast<T>(1 / factorial);
  }
  if (kFirst == 0) terms[0] = 1;
  return terms;
}();

// 2 / 3, 2 / 5, .., as many as are asked for: log((1 + s) / (1 - s)) is 2 s + s^3 (2 / 3 + 2 / 5
// s^2 + ..).
template <class T, int kCount>
inline constexpr auto kLogSeries = [] {
  std::array<T, kCount> terms{};
  for (int k = 0; k < kCount; ++k)
    terms[static_cast<std::size_t>(k)] = T(2) / static_cast<T>(2 * k + 3);
  return terms;
}();

// x = n log(2) + r, n whole and |r| <= log(2) / 2. scale(y) is y 2^n where that is normal.
template <class T>
struct Reduced {
  Vector<T> r;
  BitVector<T> exponent;  // n where a number has its exponent

  explicit Reduced(Vector<T> x) noexcept {
    const Vector<T> rounded = x * std::numbers::log2e_v<T> + kRound<T>;
    const Vector<T> n = rounded - kRound<T>;
    r = (x - n * Format<T>::kLog2High) - n * Format<T>::kLog2Low;
    exponent = bits<T>(rounded) << Format<T>::kMantissa;
  }
  Vector<T> scale(Vector<T> y) const noexcept { return from_bits<T>(bits<T>(y) + exponent); }
  // exp(r) - 1, to the last bit of a small r too.
  Vector<T> exp_minus_one() const noexcept {
    return r + r * r * polynomial<T>(r, kInverseFactorials<T, 2, Format<T>::kExpTerms, 1>);
  }
};

template <class T>
inline Vector<T> exp(Vector<T> x) noexcept {
  const Reduced<T> reduced(x);
  Vector<T> y = reduced.scale(1 + reduced.exp_minus_one());
  y = x < Format<T>::kExpLow ? Vector<T>{} : y;
  return x <= Format<T>::kExpHigh ? y : x + kInfinity<T>;  // infinity for larger x, and NaN
}

template <class T>
inline Vector<T> expm1(Vector<T> x) noexcept {
  const Reduced<T> reduced(x);
  const Vector<T> e = reduced.exp_minus_one(), power = reduced.scale(T(1) - Vector<T>{});
  // Beyond 40 the 1 makes no difference, and `power` alone may overflow.
  Vector<T> y = x > 40 ? reduced.scale(1 + e) : power * e + (power - 1);
  y = x < -40 ? T(-1) - Vector<T>{} : y;
  y = x == 0 ? x : y;
  return x <= Format<T>::kExpHigh ? y : x + kInfinity<T>;
}

template <class T>
inline void scaled_exp(Vector<T> x, Vector<T>& value, Vector<T>& scale) noexcept {
  const Reduced<T> reduced(x < Format<T>::kExpLow ? Format<T>::kExpLow - Vector<T>{} : x);
  const BitVector<T> none = {}, down = x > 80 ? none + (Bits<T>(64) << Format<T>::kMantissa) : none;
  value = from_bits<T>(bits<T>(1 + reduced.exp_minus_one()) + (reduced.exponent - down));
  scale = from_bits<T>(bits<T>(T(1) - Vector<T>{}) - down);
}

// With e = exp(2 |x|) - 1: e / (e + 2).
template <class T>
inline Vector<T> tanh(Vector<T> x) noexcept {
  const BitVector<T> sign = bits<T>(x) & bits<T>(-Vector<T>{});
  Vector<T> size = from_bits<T>(bits<T>(x) ^ sign);
  size = size > Format<T>::kTanhHigh ? Format<T>::kTanhHigh - Vector<T>{} : size;
  const Reduced<T> reduced(size + size);
  const Vector<T> power = reduced.scale(T(1) - Vector<T>{});
  const Vector<T> e = power * reduced.exp_minus_one() + (power - 1);
  return from_bits<T>(bits<T>(e / (e + 2)) | sign);
}

// x = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), and s = f / (2 + f). Small terms
// are added first: log(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + the series)).
template <class T>
inline Vector<T> log(Vector<T> x) noexcept {
  using F = Format<T>;
  constexpr auto kOne = std::bit_cast<Bits<T>>(T(1)),
                 kSqrtHalf = std::bit_cast<Bits<T>>(std::numbers::sqrt2_v<T> / 2);
  // The exponent steps up where the mantissa passes the mantissa of sqrt(1/2).
  const BitVector<T> stepped = bits<T>(x) + (kOne - kSqrtHalf);
  const Vector<T> k = from_bits<T>((stepped >> F::kMantissa) + std::bit_cast<Bits<T>>(kRound<T>)) -
                      (kRound<T> + (std::numeric_limits<T>::max_exponent - 1));
  const Vector<T> f = from_bits<T>((stepped & ((Bits<T>(1) << F::kMantissa) - 1)) + kSqrtHalf) - 1;
  const Vector<T> s = f / (f + 2), z = s * s, half_square = f * f * T(0.5);
  const Vector<T> tail =
      s * (half_square + z * polynomial<T>(z, kLogSeries<T, F::kLogTerms>)) + k * F::kLog2Low;
  Vector<T> y = k * F::kLog2High - ((half_square - tail) - f);
  y = x < std::numeric_limits<T>::min() ? -kInfinity<T> - Vector<T>{} : y;
  y = x < 0 ? std::numeric_limits<T>::quiet_NaN() - Vector<T>{} : y;
  return x < kInfinity<T> ? y : x;  // infinity and NaN
}

// log(w) for w = 1 + x as rounded, plus (x - (w - 1)) / w for the bits that rounding lost. Without
// that term where w has no finite logarithm.
template <class T>
inline Vector<T> log1p(Vector<T> x) noexcept {
  const Vector<T> w = 1 + x, y = log<T>(w), whole = y + (x - (w - 1)) / w;
  return x == 0 ? x : w > 0 ? (w < kInfinity<T> ? whole : y) : y;
}

// Sine and cosine of an angle of at most pi / 4, by Taylor's series.
inline void sine_and_cosine(Vector<double> angle, Vector<double>& sine,
                            Vector<double>& cosine) noexcept {
  const Vector<double> z = -(angle * angle);
  sine = angle * polynomial<double>(z, kInverseFactorials<double, 1, 17, 2>);
  cosine = polynomial<double>(z, kInverseFactorials<double, 0, 18, 2>);
}

}  // namespace detail

// A function of blocks from the function of vectors in detail that has its name.
#define EBB_BLOCK_FUNCTION(function)                                              \
  template <class T>                                                              \
  inline Block<T> function(const Block<T>& x) noexcept {                          \
    return Block<T>::each([](Vector<T> v) { return detail::function<T>(v); }, x); \
  }
EBB_BLOCK_FUNCTION(exp)
EBB_BLOCK_FUNCTION(expm1)
EBB_BLOCK_FUNCTION(log)
EBB_BLOCK_FUNCTION(log1p)
EBB_BLOCK_FUNCTION(tanh)

// The larger one; b where a is NaN.
template <class T>
inline Block<T> fmax(const Block<T>& a, const Block<T>& b) noexcept {
  return max(a, b);
}
template <class T>
inline Block<T> abs(const Block<T>& x) noexcept {
  const BitVector<T> sign = detail::bits<T>(-Vector<T>{});
  return Block<T>::each(
      [&](Vector<T> v) { return detail::from_bits<T>(detail::bits<T>(v) & ~sign); }, x);
}
template <class T>
inline functors::ScaledExp<Block<T>> scaled_exp(const Block<T>& x) noexcept {
  functors::ScaledExp<Block<T>> e;
  for (int i = 0; i < Block<T>::kVectors; ++i)
    detail::scaled_exp<T>(x.vectors[i], e.value.vectors[i], e.scale.vectors[i]);
  return e;
}
template <class T>
inline Block<T> sigmoid(const Block<T>& x) noexcept {
  return 1 / (1 + exp(-x));
}

// The sine and cosine of 2 pi x, 0 <= x <= 1: x less the nearest quarter is exact.
inline void sine_and_cosine(const Block<double>& x, Block<double>& sine,
                            Block<double>& cosine) noexcept {
  using V = Vector<double>;
  for (int i = 0; i < Block<double>::kVectors; ++i) {
    const V rounded = 4 * x.vectors[i] + detail::kRound<double>;
    const BitVector<double> quarter = detail::bits<double>(rounded);
    const V angle = 2 * std::numbers::pi * (x.vectors[i] - (rounded - detail::kRound<double>) / 4);
    V s, c;
    detail::sine_and_cosine(angle, s, c);
    const auto odd = (quarter & 1) != 0;
    const V along = odd ? c : s, across = odd ? s : c;
    sine.vectors[i] =
        detail::from_bits<double>(detail::bits<double>(along) ^ ((quarter & 2) << 62));
    cosine.vectors[i] =
        detail::from_bits<double>(detail::bits<double>(across) ^ (((quarter + 1) & 2) << 62));
  }
}

}  // namespace ebb::cpu
