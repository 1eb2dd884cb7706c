#pragma once
#include "ebb/core/kernels/kernel.h"
#include "ebb/core/kernels/strided_walk.h"

namespace ebb::cpu {

// out = the elements of in where the walk says, which is one through all of out.
void strided_copy(const Buffer& in, const Buffer& out, const StridedWalk& walk);
// The other way round: the elements of out where the walk says = in. The rest of out stays.
void strided_store(const Buffer& in, const Buffer& out, const StridedWalk& walk);
// The same with the rest of out = value.
Status place(const KernelContext& context, const Buffer& in, const Buffer& out,
             const StridedWalk& walk, double value);

}  // namespace ebb::cpu
