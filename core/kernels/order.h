#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// What stands first over some axes: bit i of axes is axis i.
struct ExtremeAttributes {
  std::uint32_t axes = 0;
  std::uint8_t keep = 0;      // reduced axes stay, with size 1
  std::uint8_t smallest = 0;  // else the largest
  std::uint8_t position = 0;  // which element it is, not its value
  std::uint8_t reserved = 0;
};

// How the elements of each row, those along the last axis, are put into order.
struct SortAttributes {
  std::int64_t count = -1;      // those that come first; -1: all of them
  std::uint8_t descending = 0;  // the largest ones first
  std::uint8_t reserved[7] = {};
};

// The order is that of numbers, where 0 and -0 are equal; false stands before true.
namespace cpu {
// out = the extreme of in over the axes, any dtype; or as i64 its index along the one axis, or
// among all elements where all axes are reduced. NaN is the extreme, of either kind; of equals the
// first one counts. It is of no empty set.
Status extreme(const KernelContext&);
MemoryNeeds extreme_memory(const MemoryQuery&);
// out = for each row of in, any dtype, the indices (i64) of as many elements as out has in a row,
// in their order; equal ones in that of their indices. NaN counts as larger than any number.
Status argsort(const KernelContext&);
}  // namespace cpu
// The same, on a GPU.
namespace cuda {
KernelFunction extreme, argsort;
MemoryNeeds extreme_memory(const MemoryQuery&);
MemoryNeeds argsort_memory(const MemoryQuery&);
}  // namespace cuda
}  // namespace ebb
