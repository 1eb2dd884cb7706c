#include "ebb/core/kernels/slice.h"
#include "ebb/kernels/cuda/slice.h"

namespace ebb::cuda {

Status slice_backward(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const std::int64_t count = out.elements();
  if (count == 0) return {};
  const auto& slice = context.attribute<SliceAttributes>();
  const std::int64_t rows = out.spec.shape.dim(0), first = slice.first(rows);
  const std::int64_t bytes = count * static_cast<std::int64_t>(size_of(out.spec.dtype));
  const std::int64_t row = bytes / rows;
  return put(stream_of(context), {1, bytes, first * row, (slice.last(rows) - first) * row}, in.data,
             out.data);
}

}  // namespace ebb::cuda
