#pragma once
#include <cmath>
#include <limits>

namespace ebb::tests {

template <class T>
inline constexpr T kLeast = std::numeric_limits<T>::min();

// |x - exact| in ulps of exact; denormals count as zeros, whatever lies beyond the largest number
// as infinity. Infinite where only one of the two is NaN or infinity.
template <class T>
inline double ulps(T x, long double exact) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  if (std::isnan(exact)) return std::isnan(x) ? 0 : kFar;
  const T rounded = static_cast<T>(exact);
  if (std::isinf(rounded)) return x == rounded ? 0 : kFar;
  if (std::abs(rounded) < kLeast<T>) return std::abs(x) <= kLeast<T> ? 0 : kFar;
  int exponent;
  std::frexp(exact, &exponent);
  const long double place = std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits);
  const auto error = static_cast<double>(std::abs(static_cast<long double>(x) - exact) / place);
  return std::isnan(error) ? kFar : error;
}

}  // namespace ebb::tests
