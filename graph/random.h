#pragma once
#include "ebb/core/ops/random.h"
#include "ebb/graph/graph.h"

namespace ebb {

// Random tensors of a graph: nodes that draw anew in each run of a session, under the
// session's key (SessionOptions::seed). The device of the options means nothing here, the session
// has one. What the functions without a graph make is drawn once: a graph that captures it reads
// the same values in every run. Throw ShapeError for another dtype or an open shape (the _like
// forms take those), Error for a probability outside [0, 1].
Tensor uniform(Graph& graph, const Shape& shape, const UniformOptions& options = {},
               CallSite site = CallSite::here());
Tensor normal(Graph& graph, const Shape& shape, const NormalOptions& options = {},
              CallSite site = CallSite::here());
Tensor bernoulli(Graph& graph, const Shape& shape, const BernoulliOptions& options = {},
                 CallSite site = CallSite::here());

Tensor randint(Graph& graph, std::int64_t low, std::int64_t high, const Shape& shape,
               const RandintOptions& options = {}, CallSite site = CallSite::here());

Tensor permutation(Graph& graph, std::int64_t count, CallSite site = CallSite::here());

}  // namespace ebb
