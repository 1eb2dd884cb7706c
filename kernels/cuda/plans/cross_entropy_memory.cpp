#include "ebb/core/kernels/cross_entropy.h"
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/kernels/cuda/plans/row_plan.h"

namespace ebb::cuda {

MemoryNeeds softmax_cross_entropy_memory(const MemoryQuery& query) {
  if (query.attribute<CrossEntropyAttributes>().reduction == CrossEntropyAttributes::none)
    return {};
  const Shape& shape = query.inputs[0].shape;
  std::int64_t rows = 1;
  for (int axis = 0; axis + 1 < shape.rank(); ++axis) rows *= shape.dim(axis);
  return {.workspace_bytes = RowMeanPlan(rows, shape.dim(-1)).workspace_bytes()};
}

}  // namespace ebb::cuda
