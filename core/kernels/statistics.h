#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// A statistic of the elements over some axes. Bit i of axes is axis i.
struct StatisticAttributes {
  enum Kind : std::uint8_t { variance, standard_deviation, norm1, norm2, logsumexp, product };
  std::uint32_t axes = 0;
  std::uint8_t keep = 0;        // reduced axes stay, with size 1
  std::uint8_t kind = 0;        // a Kind
  std::uint8_t correction = 0;  // variance: subtracted from the number of elements
  std::uint8_t reserved = 0;
};

namespace cpu {
// out = the statistic of in, floating: the mean of squared differences from the mean, its square
// root, the sum of absolute values, the root of the sum of squares, or log(sum(exp(x))). In two
// passes where one would overflow or lose digits. For no elements: NaN, NaN, 0, 0, -infinity.
Status statistic(const KernelContext&);
MemoryNeeds statistic_memory(const MemoryQuery&);
// The product of the elements, multiplied in double, in an order fixed by the shape; 1 for none.
// On a GPU statistic() computes it.
Status prod(const KernelContext&);
MemoryNeeds prod_memory(const MemoryQuery&);
}  // namespace cpu
}  // namespace ebb
