// One row of scores, `step` elements apart, for softmax and its loss. If a score is NaN or the
// largest is infinite, the results are NaN, as the formula says.
#pragma once
#include <cmath>
#include <limits>

#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/group.h"
#include "ebb/kernels/cuda/plans/reduce_plan.h"

namespace ebb::cuda {

// exp(x - shift), with the rounding error of the difference (Knuth's exact remainder) put back: for
// x far below shift it would be worth many ulps.
template <class A>
__device__ inline A exp_of_difference(A x, A shift) {
  const A difference = x - shift, back = difference - x;
  const A lost = (x - (difference - back)) - (shift + back);
  const A y = std::exp(difference);
  return y > 0 ? y * (1 + lost) : y;
}

template <class T>
__device__ inline Accumulate<T> largest_score(const Group& group, const T* row, std::int64_t count,
                                              std::int64_t step = 1) {
  using A = Accumulate<T>;
  A largest = -std::numeric_limits<A>::infinity();
  for (std::int64_t j = group.thread(); j < count; j += group.threads()) {
    const A x = static_cast<A>(row[j * step]);
    largest = x > largest ? x : largest;
  }
  return static_cast<A>(group.max(static_cast<double>(largest)));
}

// The sum of exp(row[j] - shift). kExact uses exact differences, for results that are made of the
// terms.
template <bool kExact, class T>
__device__ inline double sum_of_exponentials(const Group& group, const T* row, std::int64_t count,
                                             Accumulate<T> shift, std::int64_t step = 1) {
  return group.sum(count, [&](std::int64_t j) {
    const auto x = static_cast<Accumulate<T>>(row[j * step]);
    if constexpr (kExact) return exp_of_difference(x, shift);
    return std::exp(x - shift);
  });
}

}  // namespace ebb::cuda
