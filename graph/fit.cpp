// The largest micro-batch whose plan stays below a limit.
#include <algorithm>
#include <string>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/micro_batch.h"
#include "ebb/core/ops/norm.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/graph_state.h"
#include "ebb/graph/program.h"

namespace ebb {

namespace {

constexpr const char* kWhat = "fit_micro_batch";

bool is_open(const FedShape& fed) {
  const Shape& declared = fed.placeholder.shape();
  return declared.rank() > 0 && declared.dim(0) == kOpen;
}

// Rows that all feeds of open length share.
std::int64_t rows_of(const FedShapes& shapes) {
  const FedShape* first = nullptr;
  for (const FedShape& fed : shapes) {
    if (!is_open(fed) || fed.shape.rank() == 0) continue;
    if (first && first->shape[0] != fed.shape[0])
      detail::refuse(kWhat,
                     "a batch is cut along the leading axis that its feeds share, and these "
                     "have " +
                         first->shape.to_string() + " and " + fed.shape.to_string());
    if (!first) first = &fed;
  }
  if (!first)
    detail::refuse(kWhat,
                   "a batch is cut along the leading axis of its feeds, and none is open (-1)");
  if (first->shape[0] < 1) detail::refuse(kWhat, "a batch has at least 1 row");
  return first->shape[0];
}

FedShapes with_rows(FedShapes shapes, std::int64_t rows) {
  for (FedShape& fed : shapes)
    if (is_open(fed)) fed.shape.set(0, rows);
  return shapes;
}

// Refuses what micro-batches would change: statistics of a batch, and a sum over its rows.
void require_divisible(const detail::Program& program, const Tensors& fetches) {
  for (const detail::Step& step : program.steps)
    if (step.node->op == &batch_norm_op)
      detail::refuse(kWhat, "batch_norm" + detail::at(step.node->site) +
                                " takes its statistics from the whole batch, and micro-batches "
                                "have others");
  for (const Tensor& fetch : fetches) {
    const Node* node = fetch.impl()->node.get();
    // Looks behind scaling of a scalar loss, and behind updates that it waits for.
    while (node->op != &sum_op && !node->inputs.empty() && node->inputs[0].producer &&
           node->outputs[0].shape.rank() == 0 &&
           node->inputs[0].producer->outputs[node->inputs[0].output].shape.rank() == 0)
      node = node->inputs[0].producer.get();
    if (node->op != &sum_op || node->outputs[0].shape.rank() != 0) continue;
    const Shape& summed = node->inputs[0].producer->outputs[node->inputs[0].output].shape;
    if (summed.rank() > 0 && summed.dim(0) == kOpen)
      detail::refuse(kWhat, "the loss is a sum over rows" + detail::at(node->site) +
                                "; micro-batches have the whole batch's update only where it is a "
                                "mean");
  }
}

}  // namespace

memory::MicroBatch Graph::fit_micro_batch(const Tensors& fetches, const FedShapes& shapes,
                                          const Device& device, memory::Limit limit,
                                          CallSite site) const {
  const detail::CallSiteScope scope(site);
  const GraphState::Reading reading(state());
  const std::int64_t rows = rows_of(shapes);
  const auto program_of = [&](std::int64_t size) {
    return detail::make_program(state(), fetches, with_rows(shapes, size), device.runtime(),
                                {.what = kWhat});
  };
  require_divisible(program_of(rows), fetches);
  // A plan's time grows with its nodes.
  const auto all =
      std::clamp<std::int64_t>(250'000 / static_cast<std::int64_t>(size() + 1), 16, 256);
  return memory::detail::fit_rows(
      kWhat, rows, limit.bytes_of(device.runtime().capacity_bytes()),
      [&](std::int64_t size) -> memory::detail::Need {
        const memory::Plan plan = program_of(size).plan;
        return {plan.peak_bytes, plan.reserved_bytes};
      },
      all);
}

}  // namespace ebb
