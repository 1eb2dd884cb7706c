#pragma once
#include "ebb/core/kernels/kernel.h"
#include "ebb/core/kernels/strided_walk.h"

namespace ebb::cpu {

// out = the elements of in that the walk visits; it goes through all of out.
void strided_copy(const Buffer& in, const Buffer& out, const StridedWalk& walk);
// The inverse: writes `in` to the elements of out that the walk visits. The rest of out stays.
void strided_store(const Buffer& in, const Buffer& out, const StridedWalk& walk);
// strided_store with `value` in the rest of out.
Status put(const KernelContext& context, const Buffer& in, const Buffer& out,
           const StridedWalk& walk, double value);

}  // namespace ebb::cpu
