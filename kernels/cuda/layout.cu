#include "ebb/core/kernels/layout.h"

#include "ebb/core/kernels/slice.h"
#include "ebb/kernels/cuda/stream.h"
#include "ebb/kernels/cuda/strided_copy.h"

namespace ebb::cuda {

Status permute(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  return strided_copy(context, in, out, permuted(in.spec, context.attribute<PermuteAttributes>()));
}

Status concat(const KernelContext& context) {
  const Buffer& out = context.outputs[0];
  return for_parts(out.spec, context.attribute<ConcatAttributes>(), context.inputs,
                   [&](const Buffer& in, const StridedWalk& walk) {
                     return strided_store(stream_of(context), in.data, out.data, walk);
                   });
}

Status concat_backward(const KernelContext& context) {
  const Buffer& in = context.inputs[0];
  return for_parts(in.spec, context.attribute<ConcatAttributes>(), context.outputs,
                   [&](const Buffer& out, const StridedWalk& walk) {
                     return strided_copy(stream_of(context), in.data, out.data, walk);
                   });
}

Status pad(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const auto& attributes = context.attribute<PadAttributes>();
  return put(context, in, out, padded(in.spec, out.spec, attributes), attributes.value);
}

Status broadcast(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  return strided_copy(context, in, out, expanded(in.spec, out.spec));
}

Status select(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  return strided_copy(context, in, out, part_of(in.spec, context.attribute<SelectAttributes>()));
}

Status select_backward(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  return put(context, in, out, part_of(out.spec, context.attribute<SelectAttributes>()), 0);
}

Status strided_slice(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  return strided_copy(context, in, out, part_of(in.spec, context.attribute<SliceAttributes>()));
}

Status slice_backward(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  return put(context, in, out, part_of(out.spec, context.attribute<SliceAttributes>()), 0);
}

}  // namespace ebb::cuda
