#pragma once
#include <cmath>
#include <cstdint>

#include "ebb/kernels/cpu/elementary.h"
#include "ebb/kernels/cpu/in_double.h"
#include "ebb/kernels/cpu/one_by_one.h"

// expm1, log2, exp2 and pow of whole blocks; the other functions are in kernels/cpu/elementary.h.
namespace ebb::cpu {
namespace detail {

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
inline Vector<T> log2(Vector<T> x) noexcept {
  const Mantissa<T> m(x);
  return m.at_ends(x, m.k + m.log() * std::numbers::log2e_v<T>);
}

// The smallest results are flushed to 0, as all such numbers are.
template <class T>
inline Vector<T> exp2(Vector<T> x) noexcept {
  const Vector<T> rounded = x + kRound<T>;
  Reduced<T> reduced(Vector<T>{});
  reduced.r = (x - (rounded - kRound<T>)) * std::numbers::ln2_v<T>;
  reduced.exponent = bits<T>(rounded) << Format<T>::kMantissa;
  Vector<T> y = reduced.scale(1 + reduced.exp_minus_one());
  y = x < std::numeric_limits<T>::min_exponent - 1 ? Vector<T>{} : y;
  return x < std::numeric_limits<T>::max_exponent ? y : x + kInfinity<T>;
}

// The upper 26 bits of x; two such numbers have an exact product.
inline Vector<double> high(Vector<double> x) noexcept {
  return from_bits<double>(bits<double>(x) & ~((Bits<double>(1) << 27) - 1));
}

// |x|^y = 2^(y log2 |x|), the logarithm in two parts. After fdlibm's e_pow.c (Sun Microsystems,
// 1993): with s = f / (2 + f), log(1 + f) is 2/3 s (3 + s^2 + 3/5 s^4 + ..).
inline Vector<double> power_of_size(Vector<double> size, Vector<double> y) noexcept {
  using V = Vector<double>;
  constexpr double kTerms[] = {3. / 5,  3. / 7,  3. / 9,  3. / 11, 3. / 13,
                               3. / 15, 3. / 17, 3. / 19, 3. / 21, 3. / 23};
  constexpr double kTwoThirds = 0x1.ec709dc3a03fdp-1,  // 2/3 log2(e), and its parts
      kTwoThirdsHigh = 0x1.ec709ep-1, kTwoThirdsLow = -0x1.e2fe0145b01f5p-28;
  const Mantissa<double> m(size);
  const V over = 1 / (m.f + 2), s = m.f * over, s_high = high(s), d_high = high(m.f + 2);
  const V s_low = over * ((m.f - s_high * d_high) - s_high * (m.f - (d_high - 2)));
  const V z = s * s, square = s_high * s_high;
  const V rest = z * z * polynomial<double>(z, kTerms) + s_low * (s_high + s);
  const V sum_high = high(3 + square + rest), sum_low = rest - ((sum_high - 3) - square);
  const V large = s_high * sum_high, small = s_low * sum_high + sum_low * s;
  const V p_high = high(large + small), p_low = small - (p_high - large);
  const V log_high = kTwoThirdsHigh * p_high, log_low = kTwoThirdsLow * p_high + p_low * kTwoThirds;
  const V t_high = high(log_high + log_low + m.k), t_low = log_low - ((t_high - m.k) - log_high);
  // y t in two parts as well. Their sum is split into n, an exponent, and a rest.
  const V y_high = high(y), product = y_high * t_high, more = (y - y_high) * t_high + y * t_low;
  const V exponent = product + more;
  const V rounded = exponent + kRound<double>, n = rounded - kRound<double>;
  const V r = ((product - n) + more) * std::numbers::ln2;
  const V e = 1 + (r + r * r * polynomial<double>(r, kInverseFactorials<double, 2, 13, 1>));
  V result = from_bits<double>(bits<double>(e) + (bits<double>(rounded) << 52));
  result = exponent < -1022 ? V{} : result;
  return exponent < 1024 ? result : kInfinity<double> - V{};
}

// By series in double, cut off where that moves the float by less than 0.01 ulp.
inline Vector<float> power_of_size(Vector<float> size, Vector<float> y) noexcept {
  using V = Vector<double>;
  constexpr auto kPower = [](V base, V to) {
    const Mantissa<double> m(base);
    const V s = m.f / (m.f + 2), z = s * s;
    const V log = s * (2 + z * polynomial<double>(z, kLogSeries<double, 6>));
    const V exponent = to * (m.k + log * std::numbers::log2e);
    const V rounded = exponent + kRound<double>;
    const V r = (exponent - (rounded - kRound<double>)) * std::numbers::ln2;
    const V e = 1 + (r + r * r * polynomial<double>(r, kInverseFactorials<double, 2, 9, 1>));
    V result = from_bits<double>(bits<double>(e) + (bits<double>(rounded) << 52));
    result = exponent < -1022 ? V{} : result;
    return exponent < 1023 ? result : kInfinity<double> - V{};
  };
  return in_double(kPower, size, y);
}

template <class T>
inline Vector<T> pow(Vector<T> x, Vector<T> y) noexcept {
  using V = Vector<T>;
  using Integers = Lanes<std::make_signed_t<Bits<T>>, kLanes<T>>;
  const auto sign = bits<T>(x) & bits<T>(-V{});
  const V size = from_bits<T>(bits<T>(x) ^ sign), y_size = y < 0 ? -y : y;
  V e = power_of_size(size, y);
  // x of size 0 or infinity, or y infinite: 0 or infinity; 1 where |x| is 1.
  const auto y_is_end = y_size == kInfinity<T>;
  const auto is_end = (size == 0) | (size == kInfinity<T>) | y_is_end;
  const V end = (size > 1) == (y > 0) ? kInfinity<T> - V{} : V{};
  e = is_end ? end : e;
  // From here on all numbers are even.
  const V below = y_size < 2 / std::numeric_limits<T>::epsilon() ? y : V{};
  const Integers whole = __builtin_convertvector(below, Integers);
  const V back = __builtin_convertvector(whole, V);
  const V nan = std::numeric_limits<T>::quiet_NaN() - V{};
  const auto is_root = (back != below) & (x < 0) & (x > -kInfinity<T>);
  e = is_root ? nan : e;
  const auto is_odd = ((whole & 1) != 0) & (back == below);
  e = is_odd ? from_bits<T>(bits<T>(e) | sign) : e;
  const auto is_known = (x == x) & (y == y);
  e = is_known ? e : nan;
  const auto is_one = (y == 0) | (x == 1) | ((size == 1) & y_is_end);
  return is_one ? 1 - V{} : e;
}

}  // namespace detail

EBB_BLOCK_FUNCTION(expm1)
EBB_BLOCK_FUNCTION(log2)
EBB_ONE_BY_ONE(log10)
EBB_BLOCK_FUNCTION(exp2)
template <class T>
inline Block<T> pow(const Block<T>& x, const Block<T>& y) noexcept {
  return Block<T>::each([](Vector<T> a, Vector<T> b) { return detail::pow<T>(a, b); }, x, y);
}

}  // namespace ebb::cpu
