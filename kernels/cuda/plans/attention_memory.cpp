#include "ebb/core/kernels/attention.h"
#include "ebb/core/kernels/carver.h"
#include "ebb/core/kernels/device_kernel.h"

namespace ebb::cuda {

// Workspace: sum(dy y) for each query, f64 for f64, else f32.
MemoryNeeds attention_backward_memory(const MemoryQuery& query) {
  const std::int64_t rows = query.inputs[kAttentionLse].shape.elements();
  return {.workspace_bytes = aligned_bytes(static_cast<std::size_t>(rows) *
                                           size_of(query.inputs[kAttentionLse].dtype))};
}

}  // namespace ebb::cuda
