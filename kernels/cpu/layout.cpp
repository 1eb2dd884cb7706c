#include "ebb/core/kernels/layout.h"

#include "ebb/core/kernels/slice.h"
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

Status select(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  strided_copy(in, out, part_of(in.spec, context.attribute<SelectAttributes>()));
  return {};
}

Status select_backward(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  return put(context, in, out, part_of(out.spec, context.attribute<SelectAttributes>()), 0);
}

Status strided_slice(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  strided_copy(in, out, part_of(in.spec, context.attribute<SliceAttributes>()));
  return {};
}

Status slice_backward(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const StridedWalk part = part_of(out.spec, context.attribute<SliceAttributes>());
  if (in.spec.shape != out.spec.shape) return put(context, in, out, part, 0);
  // All elements, reversed. The reversal is its own inverse, so it can be done by copying, which
  // writes in order: that is quicker than reading in order.
  strided_copy(in, out, part);
  return {};
}

}  // namespace ebb::cpu
