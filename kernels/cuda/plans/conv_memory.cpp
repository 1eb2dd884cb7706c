#include "ebb/core/kernels/device_kernel.h"
#include "ebb/kernels/cuda/plans/conv_plan.h"

namespace ebb::cuda {

MemoryNeeds conv2d_weight_gradient_memory(const MemoryQuery& query) {
  const ConvLayout of(query.inputs[0].shape, query.inputs[2].shape, query.inputs[1].shape,
                      query.attribute<ConvAttributes>());
  return {.workspace_bytes = ConvSegments(of).bytes(of, query.outputs[0].dtype)};
}

}  // namespace ebb::cuda
