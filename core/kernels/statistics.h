#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// What is computed of the elements over some axes: bit i of axes is axis i.
struct StatisticAttributes {
  enum Kind : std::uint8_t { variance, standard_deviation, norm1, norm2, logsumexp, product };
  std::uint32_t axes = 0;
  std::uint8_t keep = 0;        // reduced axes stay, with size 1
  std::uint8_t kind = 0;        // a Kind
  std::uint8_t correction = 0;  // variance: what the number of elements is less by
  std::uint8_t reserved = 0;
};

namespace cpu {
// out = the statistic of in, floating: the mean of squared differences from the mean, its square
// root, the sum of sizes, the square root of that of squares, or log(sum(exp(x))). In two passes
// where one would overflow or lose digits. Of no elements: NaN, NaN, 0, 0, -infinity.
Status statistic(const KernelContext&);
MemoryNeeds statistic_memory(const MemoryQuery&);
// The product of the elements, multiplied in double, in an order fixed by the shape; of none 1.
Status prod(const KernelContext&);
MemoryNeeds prod_memory(const MemoryQuery&);
}  // namespace cpu
// The same in one pass, on a GPU; statistic() is the product as well.
namespace cuda {
KernelFunction statistic;
MemoryNeeds statistic_memory(const MemoryQuery&);
}  // namespace cuda
}  // namespace ebb
