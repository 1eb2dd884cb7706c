#pragma once
#include "ebb/core/ops/create.h"
#include "ebb/graph/graph.h"

namespace ebb {

// Tensors of a graph out of nothing: nodes without inputs, which a session computes in each run.
// What the functions without a graph make has values, which a graph that uses it keeps. The device
// of the options means nothing here, the session has one. Throw as those functions do.
Tensor zeros(Graph& graph, const Shape& shape, const CreateOptions& options = {},
             CallSite site = CallSite::here());
Tensor ones(Graph& graph, const Shape& shape, const CreateOptions& options = {},
            CallSite site = CallSite::here());
Tensor full(Graph& graph, const Shape& shape, double value, const CreateOptions& options = {},
            CallSite site = CallSite::here());
Tensor arange(Graph& graph, double start, double end, const ArangeOptions& options = {},
              CallSite site = CallSite::here());
Tensor linspace(Graph& graph, double start, double end, std::int64_t count,
                const CreateOptions& options = {}, CallSite site = CallSite::here());
Tensor eye(Graph& graph, std::int64_t rows, const EyeOptions& options = {},
           CallSite site = CallSite::here());

}  // namespace ebb
