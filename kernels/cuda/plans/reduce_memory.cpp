#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/reduce.h"
#include "ebb/kernels/cuda/plans/reduce_plan.h"

namespace ebb::cuda {
namespace {

MemoryNeeds needs(const Shape& shape, std::uint32_t axes) noexcept {
  return {.workspace_bytes = plan_sum(MergedAxes(shape, axes)).workspace_bytes()};
}

}  // namespace

MemoryNeeds sum_memory(const MemoryQuery& query) {
  return needs(query.inputs[0].shape, query.attribute<Reduction>().axes);
}

MemoryNeeds sum_like_memory(const MemoryQuery& query) {
  const Shape& shape = query.inputs[0].shape;
  return needs(shape, axes_between(shape, query.outputs[0].shape));
}

}  // namespace ebb::cuda
