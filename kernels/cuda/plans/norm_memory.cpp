#include "ebb/core/kernels/device_kernel.h"
#include "ebb/kernels/cuda/plans/norm_plan.h"

namespace ebb::cuda {
namespace {

MemoryNeeds needs(const MemoryQuery& query, std::size_t x, int sums, int numbers) noexcept {
  const NormView view(query.inputs[x].shape, query.attribute<NormAttributes>());
  return {.workspace_bytes = query.inputs[x].dtype == DType::f64
                                 ? NormWorkspace<double>(nullptr, view, sums, numbers).bytes
                                 : NormWorkspace<float>(nullptr, view, sums, numbers).bytes};
}

}  // namespace

MemoryNeeds norm_backward_memory(const MemoryQuery& query) {
  return query.wants(1) || query.wants(2) ? needs(query, 1, 2, 0) : MemoryNeeds();
}
MemoryNeeds batch_norm_memory(const MemoryQuery& query) { return needs(query, 0, 1, 2); }
MemoryNeeds batch_norm_backward_memory(const MemoryQuery& query) { return needs(query, 1, 2, 2); }

}  // namespace ebb::cuda
