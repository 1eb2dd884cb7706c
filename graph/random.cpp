#include "ebb/graph/random.h"

#include "ebb/core/base/called.h"
#include "ebb/core/base/error.h"
#include "ebb/graph/graph_state.h"

namespace ebb {
namespace {

// Refuses before the draw is recorded, so that the graph stays as it was.
Tensor create(const OpDef& op, Graph& graph, double a, double b, const Shape& shape, DType dtype,
              CallSite site) {
  if (shape.is_open())
    throw ShapeError(detail::message(
        op.name, "takes no open shape " + shape.to_string() + "; " + op.name + "_like does", site));
  if (!is_floating(dtype))
    throw ShapeError(detail::message(op.name, detail::makes_floating(dtype), site));
  const detail::CalledScope called(op.name);
  const Tensor draw = graph.state().draw(site);
  return apply_one(op, {draw}, detail::creation_attributes(a, b, shape, dtype), site);
}

}  // namespace

Tensor uniform(Graph& graph, const Shape& shape, const UniformOptions& options, CallSite site) {
  const auto [low, high] =
      detail::uniform_bounds("uniform", options.low, options.high, options.dtype, site);
  return create(uniform_op, graph, low, high, shape, options.dtype, site);
}

Tensor normal(Graph& graph, const Shape& shape, const NormalOptions& options, CallSite site) {
  detail::require_normal("normal", options.mean, options.standard_deviation, site);
  return create(normal_op, graph, options.mean, options.standard_deviation, shape, options.dtype,
                site);
}

Tensor bernoulli(Graph& graph, const Shape& shape, const BernoulliOptions& options, CallSite site) {
  detail::require_probability(options.probability, site);
  return create(bernoulli_op, graph, options.probability, 1, shape, options.dtype, site);
}

Tensor randint(Graph& graph, std::int64_t low, std::int64_t high, const Shape& shape,
               const RandintOptions& options, CallSite site) {
  const detail::CalledScope called("randint");
  const Attributes told = detail::randint_attributes(low, high, shape, options.dtype, site);
  return apply_one(randint_op, {graph.state().draw(site)}, told, site);
}

Tensor permutation(Graph& graph, std::int64_t count, CallSite site) {
  return detail::permutation_of(
      count, site, [&](std::int64_t end) { return randint(graph, 0, end, {count}, {}, site); });
}

}  // namespace ebb
