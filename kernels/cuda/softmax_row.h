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

// `packed`: packs of neighbours are read, and `step` is 1.
template <class T>
__device__ inline Accumulate<T> largest_score(const Group& group, const T* row, std::int64_t count,
                                              bool packed, std::int64_t step = 1) {
  using A = Accumulate<T>;
  A largest = -std::numeric_limits<A>::infinity();
  group.each<kPack<T>>(count, packed, [&]<int N>(std::int64_t j) {
    const Pack<T, N> x = load<N>(row + j * step);
    for (int k = 0; k < N; ++k) {
      const A score = static_cast<A>(x[k]);
      largest = score > largest ? score : largest;
    }
  });
  return static_cast<A>(group.max(static_cast<double>(largest)));
}

// The sum of exp(row[j] - shift). kExact uses exact differences, for results that are made of the
// terms.
template <bool kExact, class T>
__device__ inline double sum_of_exponentials(const Group& group, const T* row, std::int64_t count,
                                             Accumulate<T> shift, bool packed,
                                             std::int64_t step = 1) {
  return group.sum<kPack<T>>(count, packed, [&]<int N>(std::int64_t j) {
    Pack<Accumulate<T>, N> x = as_pack<Accumulate<T>>(load<N>(row + j * step));
    for (int k = 0; k < N; ++k)
      x[k] = kExact ? exp_of_difference(x[k], shift) : std::exp(x[k] - shift);
    return x;
  });
}

}  // namespace ebb::cuda
