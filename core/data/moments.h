#pragma once
#include <cmath>
#include <cstddef>

namespace ebb::detail {

struct Moments {
  double mean = 0;
  double deviation = 1;  // of the whole population; 1 if all values are equal
};

// Mean and deviation of `count` values, at least one, `stride` apart.
template <class T>
Moments moments(const T* values, std::size_t count, std::size_t stride = 1) {
  const auto at = [&](std::size_t i) { return static_cast<double>(values[i * stride]); };
  double sum = 0;
  bool constant = true;
  for (std::size_t i = 0; i < count; ++i) {
    sum += at(i);
    constant &= values[i * stride] == values[0];
  }
  // Checked exactly, so that rounding makes no deviation out of equal values.
  if (constant) return {at(0), 1};
  const double mean = sum / static_cast<double>(count);
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) squares += (at(i) - mean) * (at(i) - mean);
  return {mean, std::sqrt(squares / static_cast<double>(count))};
}

}  // namespace ebb::detail
