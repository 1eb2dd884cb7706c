#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// The largest or smallest element over some axes. Bit i of axes is axis i.
struct ExtremeAttributes {
  std::uint32_t axes = 0;
  std::uint8_t keep = 0;      // reduced axes stay, with size 1
  std::uint8_t smallest = 0;  // else the largest
  std::uint8_t position = 0;  // its index, not its value
  std::uint8_t reserved = 0;
};

// The order that the elements of each row, along the last axis, are put into.
struct SortAttributes {
  std::int64_t count = -1;      // how many of the first elements; -1: all
  std::uint8_t descending = 0;  // the largest ones first
  std::uint8_t reserved[7] = {};
};

// Elements are ordered as numbers, where 0 equals -0; false stands before true.
namespace cpu {
// out = the extreme of in over the axes, any dtype. With `position`: its index, i64, along the one
// reduced axis, or among all elements where all axes are reduced. NaN is the extreme, largest or
// smallest; of equal elements the first counts. No set is empty.
Status extreme(const KernelContext&);
MemoryNeeds extreme_memory(const MemoryQuery&);
// out = for each row of in, any dtype, the indices (i64) of its first elements in order, as many as
// out has in a row. Equal elements keep their order. NaN counts as larger than any number.
Status argsort(const KernelContext&);
}  // namespace cpu
}  // namespace ebb
