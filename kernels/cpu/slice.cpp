#include "ebb/core/kernels/slice.h"

#include "ebb/kernels/cpu/strided_copy.h"

namespace ebb::cpu {

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
