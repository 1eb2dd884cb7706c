// Tensors that a graph makes: its nodes are those of the functions without a graph.
#include "ebb/graph/create.h"

#include "ebb/core/tensor/tape_mode.h"
#include "ebb/graph/graph_state.h"

namespace ebb {
namespace {

// Calls the function without a graph while `graph` records: its operators have no inputs that would
// name the graph.
template <class Make>
Tensor recorded(Graph& graph, const Make& make) {
  const detail::TapeModeScope tracing;
  detail::tape_mode().tracing = &graph.state();
  return make();
}

}  // namespace

Tensor zeros(Graph& graph, const Shape& shape, const CreateOptions& options, CallSite site) {
  return recorded(graph, [&] { return zeros(shape, options, site); });
}

Tensor ones(Graph& graph, const Shape& shape, const CreateOptions& options, CallSite site) {
  return recorded(graph, [&] { return ones(shape, options, site); });
}

Tensor full(Graph& graph, const Shape& shape, double value, const CreateOptions& options,
            CallSite site) {
  return recorded(graph, [&] { return full(shape, value, options, site); });
}

Tensor arange(Graph& graph, double end, const ArangeOptions& options, CallSite site) {
  return recorded(graph, [&] { return arange(end, options, site); });
}

Tensor arange(Graph& graph, double start, double end, const ArangeOptions& options, CallSite site) {
  return recorded(graph, [&] { return arange(start, end, options, site); });
}

Tensor linspace(Graph& graph, double start, double end, std::int64_t count,
                const CreateOptions& options, CallSite site) {
  return recorded(graph, [&] { return linspace(start, end, count, options, site); });
}

Tensor eye(Graph& graph, std::int64_t rows, const EyeOptions& options, CallSite site) {
  return recorded(graph, [&] { return eye(rows, options, site); });
}

Tensor uniform(Graph& graph, const Shape& shape, const UniformOptions& options, CallSite site) {
  return recorded(graph, [&] { return uniform(shape, options, site); });
}

Tensor normal(Graph& graph, const Shape& shape, const NormalOptions& options, CallSite site) {
  return recorded(graph, [&] { return normal(shape, options, site); });
}

Tensor bernoulli(Graph& graph, const Shape& shape, const BernoulliOptions& options, CallSite site) {
  return recorded(graph, [&] { return bernoulli(shape, options, site); });
}

Tensor randint(Graph& graph, std::int64_t low, std::int64_t high, const Shape& shape,
               const RandintOptions& options, CallSite site) {
  return recorded(graph, [&] { return randint(low, high, shape, options, site); });
}

Tensor permutation(Graph& graph, std::int64_t count, CallSite site) {
  return recorded(graph, [&] { return permutation(count, {}, site); });
}

Tensor memory::bytes_in_use(Graph& graph, CallSite site) {
  return recorded(graph, [&] { return bytes_in_use(Device::cpu(), site); });
}

Tensor memory::max_bytes_in_use(Graph& graph, CallSite site) {
  return recorded(graph, [&] { return max_bytes_in_use(Device::cpu(), site); });
}

Tensor memory::bytes_limit(Graph& graph, CallSite site) {
  return recorded(graph, [&] { return bytes_limit(Device::cpu(), site); });
}

}  // namespace ebb
