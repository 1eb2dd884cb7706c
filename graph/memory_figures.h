#pragma once
#include "ebb/core/ops/memory_figures.h"
#include "ebb/graph/graph.h"

namespace ebb::memory {

// The figures of core/ops/memory_figures.h, read in each run at roughly this place of the program.
// Nodes above may run later and nodes below earlier; to fix the order, use the functions there that
// take a tensor to follow.
Tensor bytes_in_use(Graph& graph, CallSite site = CallSite::here());
Tensor max_bytes_in_use(Graph& graph, CallSite site = CallSite::here());
Tensor bytes_limit(Graph& graph, CallSite site = CallSite::here());

}  // namespace ebb::memory
