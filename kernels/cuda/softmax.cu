#include "ebb/core/kernels/loss.h"
#include "ebb/kernels/cuda/softmax_row.h"

namespace ebb::cuda {
namespace {

template <class Group, class T>
__global__ void softmax_kernel(const T* in, T* out, std::int64_t rows, std::int64_t classes,
                               int threads) {
  __shared__ double scratch[kWarp];
  const Group group(threads, scratch);
  for_rows(group, rows, [&](std::int64_t row, bool there) {
    const T* x = in + row * classes;
    const std::int64_t count = there ? classes : 0;
    const Accumulate<T> shift = largest_score(group, x, count);
    const double sum = sum_of_exponentials<true>(group, x, count, shift);
    const auto scale = static_cast<Accumulate<T>>(1 / sum);
    for (std::int64_t j = group.thread(); j < count; j += group.threads())
      out[row * classes + j] =
          static_cast<T>(exp_of_difference(static_cast<Accumulate<T>>(x[j]), shift) * scale);
  });
}

}  // namespace

Status softmax(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const std::int64_t classes = in.spec.shape.dim(-1);
  if (out.elements() == 0) return {};
  const std::int64_t rows = out.elements() / classes;
  return for_floating(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    const int threads = threads_of_row(classes);
    const auto kernel = threads == 0 ? softmax_kernel<BlockGroup, T> : softmax_kernel<LaneGroup, T>;
    return launch(stream_of(context), kernel, blocks_for(rows, rows_of_block(threads)), kRowThreads,
                  in.as<const T>(), out.as<T>(), rows, classes, threads);
  });
}

}  // namespace ebb::cuda
