#include "ebb/core/kernels/layout.h"

#include "ebb/core/kernels/slice.h"
#include "ebb/kernels/cuda/stream.h"
#include "ebb/kernels/cuda/strided_copy.h"

namespace ebb::cuda {

namespace {

const Spec& input(const KernelContext& context) noexcept { return context.inputs[0].spec; }
const Spec& output(const KernelContext& context) noexcept { return context.outputs[0].spec; }

}  // namespace

Status permute(const KernelContext& context) {
  return strided_copy(context, permuted(input(context), context.attribute<PermuteAttributes>()));
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
  const auto& attributes = context.attribute<PadAttributes>();
  return put(context, padded(input(context), output(context), attributes), attributes.value);
}

Status broadcast(const KernelContext& context) {
  return strided_copy(context, expanded(input(context), output(context)));
}

Status select(const KernelContext& context) {
  return strided_copy(context, part_of(input(context), context.attribute<SelectAttributes>()));
}

Status select_backward(const KernelContext& context) {
  return put(context, part_of(output(context), context.attribute<SelectAttributes>()), 0);
}

Status strided_slice(const KernelContext& context) {
  return strided_copy(context, part_of(input(context), context.attribute<SliceAttributes>()));
}

Status slice_backward(const KernelContext& context) {
  return put(context, part_of(output(context), context.attribute<SliceAttributes>()), 0);
}

}  // namespace ebb::cuda
