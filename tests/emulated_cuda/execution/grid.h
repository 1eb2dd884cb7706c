// A kernel, run on the calling thread, block after block.
#pragma once
#include <cuda_runtime.h>
#include "ebb/tests/emulated_cuda/outcome.h"

namespace ebb::emulated {

// All blocks in an order drawn from `random`, as are warps and lanes in each. Ends at the first
// mistake: a barrier or a warp's operation that not all reach, an address where no memory is.
// Always called on one and the same thread.
Outcome run_grid(const KernelCall& call, dim3 grid, dim3 block, Random& random);

// Runs function(data) where an address without memory is an outcome.
Outcome run_guarded(void (*function)(void* data), void* data);

// In a child of fork(), whose executing thread is another.
void forget_processor() noexcept;

}  // namespace ebb::emulated
