#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

#include "ebb/kernels/cpu/elementary.h"
#include "ebb/kernels/cpu/reduce_loops.h"

// One row of scores, for softmax and its loss. Where a score is NaN or the largest is infinite, the
// results are NaN, as by the formula.
namespace ebb::cpu {

template <class T>
inline T largest_score(const T* row, std::int64_t count) noexcept {
  constexpr T kLowest = -std::numeric_limits<T>::infinity();
  Block<T> best = kLowest;
  std::int64_t i = 0;
  for (; i + kBlock<T> <= count; i += kBlock<T>) best = max(load(row + i), best);
  if (i < count) best = max(load_tail(row + i, count - i, kLowest), best);
  return largest(best);
}

// exp(x - shift), corrected for the rounding of the difference (Knuth's exact remainder), which is
// worth many ulps for x far below shift.
template <class T>
inline Block<T> exp_of_difference(const Block<T>& x, const Block<T>& shift) noexcept {
  const Block<T> difference = x - shift, back = difference - x;
  const Block<T> lost = (x - (difference - back)) - (shift + back);
  const auto put_back = [](auto y, auto part) { return y > 0 ? y * (1 + part) : y; };
  return Block<T>::each(put_back, exp(difference), lost);
}

// The sum of exp(row[i] - shift), with shift the row's largest. Optionally writes each term to out,
// which may be row. The sum alone needs no correction for rounding.
template <bool kWrite, class T>
inline double exponentials(const T* row, std::int64_t count, T shift, T* out = nullptr) noexcept {
  const Block<T> shifts = shift;
  const auto term = [&](const Block<T>& x) {
    if constexpr (kWrite) return exp_of_difference(x, shifts);
    return exp(x - shifts);
  };
  double total = 0;
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t end = std::min(count, i + kRun * kBlock<T>);
    Block<T> sums = 0;
    for (; i + kBlock<T> <= end; i += kBlock<T>) {
      const Block<T> e = term(load(row + i));
      if constexpr (kWrite) store(out + i, e);
      sums += e;
    }
    if (i < end) {
      const Block<T> e = term(load_tail(row + i, end - i, -std::numeric_limits<T>::infinity()));
      if constexpr (kWrite) store_tail(out + i, e, end - i);
      sums += e;
      i = end;
    }
    total += sum(sums);
  }
  return total;
}

}  // namespace ebb::cpu
