#pragma once
#include <algorithm>
#include <cstdint>

#include "ebb/kernels/cpu/vector_block.h"

// Sums in an order that depends on counts alone: short runs in the element type, added up in
// double.
namespace ebb::cpu {

// The columns summed together, half a kilobyte of each row, and the rows summed in the element
// type.
template <class T>
inline constexpr std::int64_t kStrip = 8 * kBlock<T>;
inline constexpr std::int64_t kRun = 64;

// The term of a sum, for a block of elements from column j on. padding() is the element whose term
// is 0, for the rest of a last block.
struct Identity {
  template <class T>
  Block<T> operator()(const Block<T>& x, std::int64_t /*j*/) const noexcept {
    return x;
  }
  float padding() const noexcept { return 0; }
};

namespace detail {

// totals[j] += the sum of kBlocks blocks of columns over a run of rows.
template <int kBlocks, class T, class Offset, class Term>
inline void add_blocks(const T* in, std::int64_t begin, std::int64_t end, const Offset& offset,
                       double* totals, std::int64_t j, const Term& term) noexcept {
  in += j;
  totals += j;
  Block<T> sums[kBlocks];
  for (auto& sum : sums) sum = 0;
  for (std::int64_t row = begin; row < end; ++row) {
    const T* from = in + offset(row);
    for (int b = 0; b < kBlocks; ++b)
      sums[b] += term(load(from + b * kBlock<T>), j + b * kBlock<T>);
  }
  T elements[kBlocks * kBlock<T>];
  for (int b = 0; b < kBlocks; ++b) store(elements + b * kBlock<T>, sums[b]);
  for (std::int64_t i = 0; i < kBlocks * kBlock<T>; ++i)
    totals[i] += static_cast<double>(elements[i]);
}

}  // namespace detail

// totals[j] += the sum over r < rows of term(in[offset(r) + j]), for j < count.
template <class T, class Offset, class Term = Identity>
inline void add_rows(const T* in, std::int64_t rows, std::int64_t count, const Offset& offset,
                     double* totals, const Term& term = {}) noexcept {
  for (std::int64_t begin = 0; begin < rows; begin += kRun) {
    const std::int64_t end = std::min(rows, begin + kRun);
    std::int64_t j = 0;
    for (; j + 8 * kBlock<T> <= count; j += 8 * kBlock<T>)
      detail::add_blocks<8>(in, begin, end, offset, totals, j, term);
    for (; j + 4 * kBlock<T> <= count; j += 4 * kBlock<T>)
      detail::add_blocks<4>(in, begin, end, offset, totals, j, term);
    for (; j + kBlock<T> <= count; j += kBlock<T>)
      detail::add_blocks<1>(in, begin, end, offset, totals, j, term);
    if (j == count) continue;
    Block<T> sum = 0;
    for (std::int64_t row = begin; row < end; ++row)
      sum += term(load_tail(in + offset(row) + j, count - j), j);
    T elements[kBlock<T>];
    store(elements, sum);
    for (std::int64_t i = 0; i < count - j; ++i) totals[j + i] += static_cast<double>(elements[i]);
  }
}

// `total` and the terms of count contiguous elements. Terms must not depend on the column.
template <class T, class Term = Identity>
inline double add_contiguous(const T* in, std::int64_t count, const Term& term = {},
                             double total = 0) noexcept {
  constexpr std::int64_t kStep = 4 * kBlock<T>;
  std::int64_t i = 0;
  while (i + kStep <= count) {
    Block<T> sums[4];
    for (auto& sum : sums) sum = 0;
    const std::int64_t end = i + std::min((count - i) / kStep, kRun) * kStep;
    for (; i < end; i += kStep)
      for (std::int64_t b = 0; b < 4; ++b) sums[b] += term(load(in + i + b * kBlock<T>), 0);
    total += sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
  if (i == count) return total;
  Block<T> rest = 0;
  for (; i + kBlock<T> <= count; i += kBlock<T>) rest += term(load(in + i), 0);
  if (i < count) rest += term(load_tail(in + i, count - i, static_cast<T>(term.padding())), 0);
  return total + sum(rest);
}

// out[k] = finish(the sum of the count elements of row k), for kRows rows one after the other.
// Short rows are added up side by side, so that no addition waits for the one before; each in
// order.
template <int kRows, class T, class Finish>
inline void add_short_rows(const T* in, std::int64_t count, T* out, const Finish& finish) noexcept {
  double totals[kRows] = {};
  for (std::int64_t j = 0; j < count; ++j)
    for (std::int64_t k = 0; k < kRows; ++k) totals[k] += static_cast<double>(in[k * count + j]);
  for (std::int64_t k = 0; k < kRows; ++k) out[k] = finish(totals[k]);
}

}  // namespace ebb::cpu
