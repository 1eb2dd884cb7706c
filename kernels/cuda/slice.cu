#include "ebb/kernels/cuda/slice.h"

#include "ebb/core/kernels/slice.h"

namespace ebb::cuda {
namespace {

RowSlice slice_of(const Spec& spec, const SelectAttributes& attributes) noexcept {
  const Shape& shape = spec.shape;
  const auto axis =
      static_cast<int>(attributes.axis < 0 ? attributes.axis + shape.rank() : attributes.axis);
  const std::int64_t size = shape.dim(axis);
  const std::int64_t index = attributes.index < 0 ? attributes.index + size : attributes.index;
  std::int64_t outer = 1, inner = static_cast<std::int64_t>(size_of(spec.dtype));
  for (int i = 0; i < axis; ++i) outer *= shape.dim(i);
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape.dim(i);
  return {.outer = outer, .whole = size * inner, .first = index * inner, .count = inner};
}

__global__ void size_kernel(std::int64_t* out, std::int64_t size) { *out = size; }

}  // namespace

Status select(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  if (out.elements() == 0) return {};
  return take(stream_of(context), slice_of(in.spec, context.attribute<SelectAttributes>()), in.data,
              out.data);
}

Status select_backward(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  if (out.elements() == 0) return {};
  return put(stream_of(context), slice_of(out.spec, context.attribute<SelectAttributes>()), in.data,
             out.data);
}

Status size(const KernelContext& context) {
  const auto axis = static_cast<int>(context.attribute<SizeAttributes>().axis);
  return launch(stream_of(context), size_kernel, 1, 1, context.outputs[0].as<std::int64_t>(),
                context.inputs[0].spec.shape.dim(axis));
}

}  // namespace ebb::cuda
