#pragma once
#include "ebb/core/ops/memory_figures.h"
#include "ebb/graph/graph.h"

namespace ebb::memory {

// The figures of core/ops/memory_figures.h, read in each run at this place of the program: what
// stands above it may have run and need not have, and what stands below it likewise, unless a
// tensor to follow is given there.
Tensor bytes_in_use(Graph& graph, CallSite site = CallSite::here());
Tensor max_bytes_in_use(Graph& graph, CallSite site = CallSite::here());
Tensor bytes_limit(Graph& graph, CallSite site = CallSite::here());

}  // namespace ebb::memory
