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

memory::Plan Graph::plan(const Tensors& fetches, const FedShapes& shapes, const Device& device,
                         CallSite site) const {
  const detail::CallSiteScope scope(site);
  const GraphState::Reading reading(state());
  for (const FedShape& fed : shapes)
    if (!fed.shape.is_countable()) detail::refuse<ShapeError>("plan", detail::too_large(fed.shape));
  return detail::make_program(state(), fetches, shapes, device.runtime(), {.what = "plan"}).plan;
}

std::size_t Graph::size() const noexcept { return state().nodes().size(); }

}  // namespace ebb
