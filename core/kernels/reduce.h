#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// Bit i of axes: axis i of the larger shape is reduced. keep: reduced axes stay, with size 1.
struct Reduction {
  std::uint32_t axes = 0;
  std::uint8_t keep = 0;
  std::uint8_t mean = 0;
  std::uint8_t correction = 0;  // of a mean: subtracted from its number of elements
  std::uint8_t reserved = 0;

  // The divisor of the sums.
  double divisor(std::int64_t elements, std::int64_t results) const noexcept {
    if (mean == 0 || results == 0) return 1;
    const double terms = static_cast<double>(elements) / static_cast<double>(results);
    return terms > correction ? terms - correction : 0;
  }
};

namespace cpu {
// out = the sum (or mean) of in over Reduction::axes; floating. Summation is pairwise or blocked in
// an order fixed by the shape; f32 sums may accumulate in f64 where that is as fast.
Status sum(const KernelContext&);
// The sum of i32, i64, u8 and bool, into i64, exact.
Status sum_integers(const KernelContext&);
// Whether any element of in, bool, is true over Reduction::axes, and whether all are; bool. No
// elements give false for any, true for all.
Status any(const KernelContext&);
Status all(const KernelContext&);
// out = in summed to the shape of out, which broadcasts to in's by NumPy's rules. Input 1 has this
// shape and no data.
Status sum_like(const KernelContext&);
// The transpose of `sum`: out = in broadcast back along Reduction::axes, for a mean divided by its
// divisor. Input 1 has the shape of out and no data.
Status broadcast_like(const KernelContext&);
MemoryFunction sum_memory, sum_like_memory;
}  // namespace cpu
}  // namespace ebb
