#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

struct CountAttributes {
  std::int64_t value = 0;
  std::int32_t gated = 0;  // 1: input 1 is `ready` (boolean scalar)
  std::int32_t reserved = 0;
};

// The part of an axis, which is not negative, from index `begin` on (negative: from the end).
struct AssignSliceAttributes {
  std::int64_t axis = 0;
  std::int64_t begin = 0;  // 0 where a tensor says it
};

// Updates write into their first input in place (marked *); output 0 is that input's buffer again.
namespace cpu {
// Inputs n* (i64 scalar), (ready)?: n += CountAttributes::value (only if ready, when gated).
Status increment(const KernelContext&);
// Inputs n* (i64 scalar), rows (i64 scalar): n += rows.
Status add_count(const KernelContext&);
// Input n (i64 scalar); output 0 (boolean scalar, its own memory) = n >= CountAttributes::value.
Status at_least(const KernelContext&);
// Inputs a*, ready (boolean scalar): a = 0 if ready; floating, i64.
Status clear_if(const KernelContext&);
// Inputs a*, b of the same shape: a += b; floating.
Status add_assign(const KernelContext&);
// Inputs a*, b of the same shape and dtype: a = b.
Status assign(const KernelContext&);
// Inputs a*, b of the same shape and dtype, ready (boolean scalar): a = b if ready.
Status assign_if(const KernelContext&);
// Inputs a*, b: a = b in the part of AssignSliceAttributes, as long along the axis as b; any dtype.
Status assign_slice(const KernelContext&);
// Inputs a*, b, begin (i64 scalar): assign_slice from there. Out of range, the CPU refuses and a GPU
// writes nothing.
Status assign_slice_at(const KernelContext&);
}  // namespace cpu
}  // namespace ebb
