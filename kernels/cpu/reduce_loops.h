#pragma once
#include <algorithm>
#include <cstdint>

#include "ebb/kernels/cpu/vector_block.h"

// Sums in an order that depends on counts alone: short runs in the element type, added up in
// double.
namespace ebb::cpu {

// Columns that are summed together, and rows summed in the element type.
inline constexpr std::int64_t kStrip = 64;
inline constexpr std::int64_t kRun = 64;

// totals[j] += the sum over r < rows of in[offset(r) + j], for count <= kStrip columns.
template <class T, class Offset>
inline void add_rows(const T* in, std::int64_t rows, std::int64_t count, const Offset& offset,
                     double* totals) noexcept {
  for (std::int64_t begin = 0; begin < rows; begin += kRun) {
    const std::int64_t end = std::min(rows, begin + kRun);
    T run[kStrip] = {};
    if (count == kStrip) {
      Block<T> sums[kStrip / kBlock<T>];
      for (auto& sum : sums) sum.setZero();
      for (std::int64_t row = begin; row < end; ++row) {
        const T* from = in + offset(row);
        for (std::int64_t b = 0; b < kStrip / kBlock<T>; ++b) sums[b] += load(from + b * kBlock<T>);
      }
      for (std::int64_t b = 0; b < kStrip / kBlock<T>; ++b) store(run + b * kBlock<T>, sums[b]);
    } else {
      for (std::int64_t row = begin; row < end; ++row) {
        const T* from = in + offset(row);
        for (std::int64_t j = 0; j < count; ++j) run[j] += from[j];
      }
    }
    for (std::int64_t j = 0; j < count; ++j) totals[j] += static_cast<double>(run[j]);
  }
}

// The sum of count contiguous elements.
template <class T>
inline double add_contiguous(const T* in, std::int64_t count) noexcept {
  constexpr std::int64_t kLanes = 4 * kBlock<T>;
  double total = 0;
  std::int64_t i = 0;
  while (i + kLanes <= count) {
    Block<T> sums[4];
    for (auto& sum : sums) sum.setZero();
    const std::int64_t end = i + std::min((count - i) / kLanes, kRun) * kLanes;
    for (; i < end; i += kLanes)
      for (std::int64_t b = 0; b < 4; ++b) sums[b] += load(in + i + b * kBlock<T>);
    const Block<T> sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    total += sum.template cast<double>().sum();
  }
  double rest = 0;
  for (; i < count; ++i) rest += static_cast<double>(in[i]);
  return total + rest;
}

}  // namespace ebb::cpu
