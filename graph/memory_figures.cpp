#include "ebb/graph/memory_figures.h"

#include "ebb/graph/graph_state.h"

namespace ebb {
namespace {

Tensor read(const OpDef& op, Graph& graph, CallSite site) {
  return std::move(graph.state().record(op, {}, {}, site)[0]);
}

}  // namespace

Tensor memory::bytes_in_use(Graph& graph, CallSite site) {
  return read(bytes_in_use_op, graph, site);
}

Tensor memory::max_bytes_in_use(Graph& graph, CallSite site) {
  return read(max_bytes_in_use_op, graph, site);
}

Tensor memory::bytes_limit(Graph& graph, CallSite site) {
  return read(bytes_limit_op, graph, site);
}

}  // namespace ebb
