#include "ebb/core/kernels/slice.h"

#include "ebb/kernels/cuda/launch.h"
#include "ebb/kernels/cuda/strided_copy.h"

namespace ebb::cuda {
namespace {

__global__ void size_kernel(std::int64_t* out, std::int64_t size) { *out = size; }

}  // namespace

Status select(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  return strided_copy(context, in, out, part_of(in.spec, context.attribute<SelectAttributes>()));
}

Status select_backward(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  return place(context, in, out, part_of(out.spec, context.attribute<SelectAttributes>()), 0);
}

Status strided_slice(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  return strided_copy(context, in, out, part_of(in.spec, context.attribute<SliceAttributes>()));
}

Status slice_backward(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  return place(context, in, out, part_of(out.spec, context.attribute<SliceAttributes>()), 0);
}

Status size(const KernelContext& context) {
  const auto axis = static_cast<int>(context.attribute<SizeAttributes>().axis);
  return launch(stream_of(context), size_kernel, 1, 1, context.outputs[0].as<std::int64_t>(),
                context.inputs[0].spec.shape.dim(axis));
}

}  // namespace ebb::cuda
