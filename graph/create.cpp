// Tensors that a graph makes: its nodes are those of the functions without a graph.
#include "ebb/graph/create.h"

#include "ebb/graph/graph_state.h"

namespace ebb {

detail::InGraph::InGraph(Graph& graph, CallSite site) noexcept
    : recorder_(graph.state()), site_(site) {}

Tensor permutation(const detail::InGraph& graph, std::int64_t count) {
  return graph.record([&] { return permutation(count); });
}

Tensor memory::bytes_in_use(const ebb::detail::InGraph& graph) {
  return graph.record([] { return bytes_in_use(Device::cpu()); });
}

Tensor memory::max_bytes_in_use(const ebb::detail::InGraph& graph) {
  return graph.record([] { return max_bytes_in_use(Device::cpu()); });
}

Tensor memory::bytes_limit(const ebb::detail::InGraph& graph) {
  return graph.record([] { return bytes_limit(Device::cpu()); });
}

}  // namespace ebb
