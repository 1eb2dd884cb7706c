#pragma once
#include "ebb/core/kernels/kernel.h"
#include "ebb/core/kernels/strided_walk.h"

namespace ebb::cpu {

// For core/kernels/layout_kernels.inc, which says what they do.
Status strided_copy(const KernelContext& context, const Buffer& in, const Buffer& out,
                    const StridedWalk& walk);
Status strided_store(const KernelContext& context, const Buffer& in, const Buffer& out,
                     const StridedWalk& walk);

}  // namespace ebb::cpu
