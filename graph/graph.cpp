#include "ebb/graph/graph.h"

#include "ebb/core/base/error.h"
#include "ebb/graph/graph_state.h"
#include "ebb/graph/program.h"

namespace ebb {

Graph::Graph() : recorder_(detail::make_ref<GraphState>()) {}

GraphState& Graph::state() const noexcept { return static_cast<GraphState&>(*recorder_); }

Tensor Graph::placeholder(std::string_view name, DType dtype, const Shape& shape, CallSite site) {
  return state().placeholder(name, {dtype, shape}, site);
}

namespace {
memory::Plan planned(const Graph& graph, const Tensors& fetches, const FedShapes& shapes,
                     const Device& device, const detail::ProgramOptions& options) {
  const GraphState::Reading reading(graph.state());
  for (const FedShape& fed : shapes)
    if (!fed.shape.is_countable())
      detail::refuse<ShapeError>(options.what, detail::too_large(fed.shape));
  return detail::make_program(graph.state(), fetches, shapes, device.runtime(), options).plan;
}
}  // namespace

memory::Plan Graph::plan(const Tensors& fetches, const FedShapes& shapes, const Device& device,
                         const memory::PlanOptions& options, CallSite site) const {
  const detail::CallSiteScope scope(site);
  return planned(
      *this, fetches, shapes, device,
      {.what = "plan",
       .details = options.details,
       .budget = memory::least_bytes({options.budget}, device.runtime().capacity_bytes())});
}

std::size_t Graph::least_budget(const Tensors& fetches, const FedShapes& shapes,
                                const Device& device, CallSite site) const {
  const detail::CallSiteScope scope(site);
  return planned(*this, fetches, shapes, device, {.what = "least_budget", .least = true})
      .reserved_bytes;
}

std::size_t Graph::size() const noexcept { return state().nodes().size(); }

}  // namespace ebb
