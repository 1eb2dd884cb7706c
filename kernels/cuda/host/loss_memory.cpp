#include "ebb/core/kernels/loss.h"
#include "ebb/kernels/cuda/host/row_plan.h"

namespace ebb::cuda {

MemoryNeeds softmax_cross_entropy_memory(const MemoryQuery& query) {
  const Shape& shape = query.inputs[0].shape;
  return {.workspace_bytes = RowMeanPlan(shape.dim(0), shape.dim(1)).workspace_bytes()};
}

}  // namespace ebb::cuda
