#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/order.h"
#include "ebb/kernels/cuda/plans/reduce_plan.h"
#include "ebb/kernels/cuda/plans/sort_plan.h"

namespace ebb::cuda {

// Workspace: the first element's key and place for each part.
MemoryNeeds extreme_memory(const MemoryQuery& query) {
  return {.workspace_bytes =
              fold_bytes(query.inputs[0].shape, query.attribute<ExtremeAttributes>().axes, 16)};
}

MemoryNeeds argsort_memory(const MemoryQuery& query) {
  const std::int64_t elements = query.outputs[0].shape.elements();
  if (elements == 0) return {};
  const std::int64_t count = query.outputs[0].shape.dim(-1);
  const SortPlan plan{elements / count, query.inputs[0].shape.dim(-1), count};
  return {.workspace_bytes = plan.workspace_bytes()};
}

}  // namespace ebb::cuda
