#pragma once
#include "ebb/core/ops/random.h"
#include "ebb/graph/graph.h"

namespace ebb {

// Random tensors of a graph: nodes that draw anew in each run of a session, under the session's key
// (SessionOptions::seed). The options' device is ignored; the session has one. (The same functions
// without a graph draw once: a graph that captures the result reads the same values in every run.)
// They throw the same errors: ShapeError for another dtype or an open shape (use the _like forms),
// Error for invalid bounds, deviations or probabilities.
Tensor uniform(Graph& graph, const Shape& shape, const UniformOptions& options = {},
               CallSite site = CallSite::here());
Tensor normal(Graph& graph, const Shape& shape, const NormalOptions& options = {},
              CallSite site = CallSite::here());
Tensor bernoulli(Graph& graph, const Shape& shape, const BernoulliOptions& options = {},
                 CallSite site = CallSite::here());
Tensor uniform(Graph& graph, const Shape& shape, detail::PlainNumber auto low,
               detail::PlainNumber auto high, CallSite site = CallSite::here()) {
  return uniform(graph, shape,
                 UniformOptions{.low = static_cast<double>(low), .high = static_cast<double>(high)},
                 site);
}
Tensor normal(Graph& graph, const Shape& shape, detail::PlainNumber auto mean,
              detail::PlainNumber auto standard_deviation, CallSite site = CallSite::here()) {
  return normal(graph, shape,
                NormalOptions{.mean = static_cast<double>(mean),
                              .standard_deviation = static_cast<double>(standard_deviation)},
                site);
}
Tensor bernoulli(Graph& graph, const Shape& shape, detail::PlainNumber auto probability,
                 CallSite site = CallSite::here()) {
  return bernoulli(graph, shape, BernoulliOptions{.probability = static_cast<double>(probability)},
                   site);
}
Tensor uniform(Graph& graph, const Shape& shape, std::same_as<DType> auto dtype,
               CallSite site = CallSite::here()) {
  return uniform(graph, shape, UniformOptions{.dtype = dtype}, site);
}
Tensor normal(Graph& graph, const Shape& shape, std::same_as<DType> auto dtype,
              CallSite site = CallSite::here()) {
  return normal(graph, shape, NormalOptions{.dtype = dtype}, site);
}

Tensor randint(Graph& graph, std::int64_t low, std::int64_t high, const Shape& shape,
               const RandintOptions& options = {}, CallSite site = CallSite::here());
Tensor randint(Graph& graph, std::int64_t low, std::int64_t high, const Shape& shape,
               std::same_as<DType> auto dtype, CallSite site = CallSite::here()) {
  return randint(graph, low, high, shape, RandintOptions{.dtype = dtype}, site);
}

Tensor permutation(Graph& graph, std::int64_t count, CallSite site = CallSite::here());

}  // namespace ebb
