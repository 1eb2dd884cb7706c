#include "ebb/core/kernels/host_copy.h"

#include "ebb/kernels/cuda/runtime/stream.h"

namespace ebb::cuda {

Status begin_host_copy(const KernelContext& context) {
  const auto& copy = context.attribute<HostCopyAttributes>();
  return answer(cuda_stream(context.stream)
                    .copies()
                    .begin(copy.number, context.outputs[0].data, context.inputs[0].data,
                           context.inputs[0].spec.bytes(),
                           copy.is_out ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice),
                "a copy to or from page-locked memory could not be started");
}

Status end_host_copy(const KernelContext& context) {
  const auto& copy = context.attribute<HostCopyAttributes>();
  return answer(cuda_stream(context.stream).copies().end(copy.number),
                "a copy to or from page-locked memory could not be waited for");
}

}  // namespace ebb::cuda
