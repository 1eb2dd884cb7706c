#include "ebb/core/kernels/reduce.h"

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/kernels/cuda/broadcast.h"
#include "ebb/kernels/cuda/fill.h"
#include "ebb/kernels/cuda/group.h"
#include "ebb/kernels/cuda/sum_columns.h"

namespace ebb::cuda {

Status sum_integers(const KernelContext&);  // kernels/cuda/count.cu

namespace {

// Sums whose terms are contiguous rows, or rows of rows.
template <class Index>
struct Rows {
  SumWalk<Index> outer, terms;  // offset of a sum; of its term
};

template <int N, class T>
__device__ inline Accumulate<T> sum_of(const Pack<T, N>& x) {
  Accumulate<T> sums[N];
  for (int j = 0; j < N; ++j) sums[j] = static_cast<Accumulate<T>>(x[j]);
  for (int half = N / 2; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) sums[j] += sums[j + half];
  return sums[0];
}

// A group of threads sums a row or a part of one: packs of N, then the remainder one by one.
template <class Group, int N, class T, class Index>
__global__ void sum_rows_kernel(const T* in, SumTarget<T> target, Rows<Index> shape, int threads) {
  __shared__ double scratch[kWarp];
  const Group group(threads, scratch);
  for_rows(group, target.results * target.parts, [&](std::int64_t item, bool there) {
    const std::int64_t part = target.parts == 1 ? 0 : item / target.results;
    const std::int64_t result = item - part * target.results;
    const std::int64_t begin = target.begin(part), count = there ? target.end(part) - begin : 0;
    const T* from = in + shape.outer.offset(result);
    double total = strided_sum(group.thread(), count / N, group.threads(), [&](std::int64_t i) {
      return sum_of(load<N>(from + shape.terms.offset(begin + i * N)));
    });
    for (std::int64_t i = count / N * N + group.thread(); i < count; i += group.threads())
      total += convert<double>(from[shape.terms.offset(begin + i)]);
    total = group.sum(total);
    if (group.thread() == 0 && there) target.write(part, result, total);
  });
}

template <class T, class Index>
Status sum_rows(cudaStream_t stream, const T* in, const SumTarget<T>& target,
                const Rows<Index>& shape, int threads, bool packed) noexcept {
  constexpr int N = kPack<T>;
  const auto kernel = threads == 0 ? (packed ? sum_rows_kernel<BlockGroup, N, T, Index>
                                             : sum_rows_kernel<BlockGroup, 1, T, Index>)
                                   : (packed ? sum_rows_kernel<LaneGroup, N, T, Index>
                                             : sum_rows_kernel<LaneGroup, 1, T, Index>);
  const unsigned blocks = blocks_for(target.results * target.parts, rows_of_block(threads));
  return target.finish(stream,
                       launch(stream, kernel, blocks, kRowThreads, in, target, shape, threads));
}

// Builds the walks over the sums and over the terms of each. The innermost axis comes first in its
// walk. For matrices summed down their columns the columns are in no walk.
template <class Index, class T>
Status reduce(cudaStream_t stream, const T* in, const SumTarget<T>& target, const MergedAxes& axes,
              int threads) noexcept {
  SumWalk<Index> kept, reduced;
  if (axes.inner_reduced) reduced.add(axes.inner, {1});
  for (int g = 0; g < axes.groups; ++g)
    (axes.reduced[g] ? reduced : kept).add(axes.size[g], {axes.stride[g]});
  if (!axes.inner_reduced) {
    const Columns<Index> columns{kept, reduced, axes.outer_kept, axes.inner};
    return sum_columns(stream, in, target, columns, threads);
  }
  constexpr int N = kPack<T>;
  const bool packed = takes_packs<N>(in) && (axes.inner % N == 0 || axes.groups == 0);
  return sum_rows(stream, in, target, Rows<Index>{kept, reduced}, threads, packed);
}

Status reduce(const KernelContext& context, const Reduction& reduction) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const std::int64_t count = in.elements(), results = out.elements();
  if (results == 0) return {};
  const double divisor = reduction.divisor(count, results);
  cudaStream_t stream = stream_of(context);
  return for_floating(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    if (count == 0) return fill_with(stream, out.as<T>(), convert<T>(0 / divisor), results);
    if (count == results && divisor == 1) return copy_bytes(stream, out, in);
    const MergedAxes merged(in.spec.shape, reduction.axes);
    const SumPlan plan = plan_sum(merged);
    const SumTarget<T> target(plan, out.as<T>(), divisor, context.workspace);
    return with_index(count, [&]<class Index>(Index) {
      return reduce<Index>(stream, in.as<const T>(), target, merged, plan.threads);
    });
  });
}

}  // namespace

Status sum(const KernelContext& context) {
  if (!is_floating(context.inputs[0].spec.dtype)) return sum_integers(context);
  return reduce(context, context.attribute<Reduction>());
}

Status sum_like(const KernelContext& context) {
  const std::uint32_t axes =
      axes_between(context.inputs[0].spec.shape, context.outputs[0].spec.shape);
  return reduce(context, {.axes = axes});
}

Status broadcast_like(const KernelContext& context) {
  const auto& reduction = context.attribute<Reduction>();
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const Shape& shape = out.spec.shape;
  const std::int64_t count = out.elements();
  if (count == 0) return {};
  Shape kept = shape;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if ((reduction.axes >> axis & 1u) != 0) kept.set(axis, 1);
  const double divisor = reduction.divisor(count, in.elements());
  return for_floating(out.spec.dtype, [&](auto type) {
    using T = decltype(type);
    return broadcast(functors::Divide(), stream_of(context),
                     {Operand<T>{in.as<const T>()}, Operand<T>::of(divisor)}, out.as<T>(),
                     BroadcastWalk(shape, kept, Shape()), count);
  });
}

}  // namespace ebb::cuda
