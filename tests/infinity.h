// Infinity and NaN, which are the same in float and double.
#pragma once
#include <limits>

namespace ebb::tests {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
// For lists of doubles.
inline constexpr double kInfinity64 = kInfinity, kNaN64 = kNaN;

}  // namespace ebb::tests
