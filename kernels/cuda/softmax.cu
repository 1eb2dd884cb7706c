#include "ebb/core/kernels/softmax.h"

#include "ebb/kernels/cuda/softmax_row.h"

namespace ebb::cuda {
namespace {

// A group of threads takes a row, whose elements are `inner` apart.
template <class T>
__global__ void softmax_kernel(const T* in, T* out, SoftmaxView view, bool log, int threads,
                               bool packed) {
  using A = Accumulate<T>;
  __shared__ double scratch[kWarp];
  const Group group(threads, scratch);
  for_rows(group, view.outer * view.inner, [&](std::int64_t row, bool there) {
    const std::int64_t outer = view.inner == 1 ? row : row / view.inner;
    const std::int64_t first = outer * view.classes * view.inner + (row - outer * view.inner);
    const std::int64_t count = there ? view.classes : 0;
    const T* x = in + first;
    const A shift = largest_score(group, x, count, packed, view.inner);
    const double sum = log ? sum_of_exponentials<false>(group, x, count, shift, packed, view.inner)
                           : sum_of_exponentials<true>(group, x, count, shift, packed, view.inner);
    const A finish = static_cast<A>(log ? std::log(sum) : 1 / sum);
    group.each<kPack<T>>(count, packed, [&]<int N>(std::int64_t j) {
      const Pack<A, N> score = as_pack<A>(load<N>(x + j * view.inner));
      Pack<T, N> y;
      for (int k = 0; k < N; ++k)
        y[k] = static_cast<T>(log ? (score[k] - shift) - finish
                                  : exp_of_difference(score[k], shift) * finish);
      store(out + first + j * view.inner, y);
    });
  });
}

Status run(const KernelContext& context, bool log) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  if (out.elements() == 0) return {};
  const SoftmaxView view(in.spec.shape, context.attribute<SoftmaxAttributes>());
  return for_floating(out.spec.dtype, [&]<class T>(T) {
    const T* const x = in.as<const T>();
    T* const y = out.as<T>();
    // Neighbouring threads have neighbouring elements: of one row, or each of another row.
    const int threads = view.inner < kWarp ? threads_of_row(view.classes) : 1;
    return launch(stream_of(context), softmax_kernel<T>,
                  blocks_for(view.outer * view.inner, rows_of_block(threads)), kRowThreads, x, y,
                  view, log, threads,
                  view.inner == 1 && rows_take_packs<kPack<T>>(view.classes, x, y));
  });
}

}  // namespace

Status softmax(const KernelContext& context) { return run(context, false); }
Status log_softmax(const KernelContext& context) { return run(context, true); }

}  // namespace ebb::cuda
