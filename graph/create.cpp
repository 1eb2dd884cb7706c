#include "ebb/graph/create.h"

#include "ebb/core/tensor/tape_mode.h"
#include "ebb/graph/graph_state.h"

namespace ebb {
namespace {

// Calls the function without a graph while `graph` records: its operators have no inputs that would
// name the graph.
template <class Make>
Tensor recorded(Graph& graph, const Make& make) {
  detail::TapeMode mode = detail::tape_mode();
  mode.tracing = &graph.state();
  const detail::TapeModeScope tracing(mode);
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

}  // namespace ebb
