// The largest micro-batch whose plan stays below a limit.
#include <algorithm>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/micro_batch.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/graph_state.h"
#include "ebb/graph/passes/passes.h"
#include "ebb/graph/passes/rows.h"
#include "ebb/graph/program.h"

namespace ebb {

namespace {

constexpr const char* kWhat = "fit_micro_batch";

// Rows that all feeds of open length share.
std::int64_t rows_of(const FedShapes& shapes) {
  const FedShape* first = nullptr;
  for (const FedShape& fed : shapes) {
    if (!detail::has_open_rows(fed.placeholder.shape()) || fed.shape.rank() == 0) continue;
    if (first && first->shape[0] != fed.shape[0])
      detail::refuse(kWhat,
                     "a batch is cut along the leading axis that its feeds share, and these have " +
                         first->shape.to_string() + " and " + fed.shape.to_string());
    if (!first) first = &fed;
  }
  if (!first)
    detail::refuse(kWhat,
                   "a batch is cut along the leading axis of its feeds, and none is open (-1)");
  if (first->shape[0] < 1) detail::refuse(kWhat, "a batch has at least 1 row");
  return first->shape[0];
}

// Refuses what micro-batches would change, as far as that is known: what mixes rows, and a loss
// that is a sum over them.
void require_divisible(const GraphState& graph, const Tensors& fetches, const FedShapes& shapes,
                       const Runtime& runtime) {
  detail::Draft draft = detail::prune(graph, runtime, fetches, kWhat);
  detail::infer(draft, shapes);
  const detail::Rows rows = detail::find_rows(draft);
  if (!rows.refusal.empty()) detail::refuse(kWhat, rows.refusal);
  // Also behind what is computed of a loss, and updates that it waits for.
  std::vector<Node::Source> below;
  for (const Tensor& fetch : fetches) below.push_back(detail::source_of(fetch));
  while (!below.empty()) {
    const Node::Source source = below.back();
    below.pop_back();
    const int place = rows.place[draft.output_of(source)];
    if (place == detail::kSum)
      detail::refuse(kWhat,
                     "the loss is a sum over rows" + detail::at(source.producer->site) +
                         "; micro-batches have the whole batch's update only where it is a mean");
    if (place == detail::kNoRows && source.producer->op->updates.empty() &&
        draft.specs[draft.output_of(source)].shape.rank() == 0)
      below.insert(below.end(), source.producer->inputs.begin(), source.producer->inputs.end());
  }
}

}  // namespace

FedShapes detail::with_rows(FedShapes shapes, std::int64_t rows) {
  for (FedShape& fed : shapes)
    if (has_open_rows(fed.placeholder.shape())) fed.shape.set(0, rows);
  return shapes;
}

memory::MicroBatch Graph::fit_micro_batch(const Tensors& fetches, const FedShapes& shapes,
                                          const Device& device, memory::Limit limit,
                                          CallSite site) const {
  const detail::CallSiteScope scope(site);
  const GraphState::Reading reading(state());
  const std::int64_t rows = rows_of(shapes);
  require_divisible(state(), fetches, detail::with_rows(shapes, rows), device.runtime());
  // A plan's time grows with its nodes.
  const auto all =
      std::clamp<std::int64_t>(250'000 / static_cast<std::int64_t>(size() + 1), 16, 256);
  return memory::detail::fit_rows(
      kWhat, rows, limit.bytes_of(device.runtime().capacity_bytes()),
      [&](std::int64_t size) -> memory::detail::Need {
        const memory::Plan plan =
            detail::make_program(state(), fetches, detail::with_rows(shapes, size),
                                 device.runtime(), {.what = kWhat})
                .plan;
        return {plan.peak_bytes, plan.reserved_bytes};
      },
      all);
}

}  // namespace ebb
