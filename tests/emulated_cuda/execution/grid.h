// Runs a kernel on the calling thread, block after block.
#pragma once
#include <functional>

#include <cuda_runtime.h>
#include "ebb/tests/emulated_cuda/outcome.h"

namespace ebb::emulated {

// Draws the order of blocks, and of warps and lanes in each, from `random`. Ends at the first
// mistake: a barrier or warp operation that not all reach, or an unmapped address. Must always be
// called on the same thread.
Outcome run_grid(const KernelCall& call, dim3 grid, dim3 block, Random& random);

// Runs a function. An access to an unmapped address becomes the outcome.
Outcome run_guarded(const std::function<Outcome()>& function);

// Called in a child of fork(), whose executing thread is another.
void forget_processor() noexcept;

}  // namespace ebb::emulated
