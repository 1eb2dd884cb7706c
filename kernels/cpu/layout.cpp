#include "ebb/core/kernels/layout.h"

#include "ebb/kernels/cpu/strided_copy.h"

namespace ebb::cpu {

Status permute(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  strided_copy(in, out, permuted(in.spec, context.attribute<PermuteAttributes>()));
  return {};
}

Status concat(const KernelContext& context) {
  const Buffer& out = context.outputs[0];
  return for_parts(out.spec, context.attribute<ConcatAttributes>(), context.inputs,
                   [&](const Buffer& in, const StridedWalk& walk) -> Status {
                     strided_store(in, out, walk);
                     return {};
                   });
}

Status concat_backward(const KernelContext& context) {
  const Buffer& in = context.inputs[0];
  return for_parts(in.spec, context.attribute<ConcatAttributes>(), context.outputs,
                   [&](const Buffer& out, const StridedWalk& walk) -> Status {
                     strided_copy(in, out, walk);
                     return {};
                   });
}

Status pad(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const auto& attributes = context.attribute<PadAttributes>();
  return put(context, in, out, padded(in.spec, out.spec, attributes), attributes.value);
}

Status broadcast(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  strided_copy(in, out, expanded(in.spec, out.spec));
  return {};
}

}  // namespace ebb::cpu
