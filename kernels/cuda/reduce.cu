#include "ebb/core/kernels/reduce.h"

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/kernels/cuda/broadcast.h"
#include "ebb/kernels/cuda/fill.h"
#include "ebb/kernels/cuda/sum_rows.h"

namespace ebb::cuda {
namespace {

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
    return is_short(count)
               ? reduce<std::uint32_t>(stream, in.as<const T>(), target, merged, plan.threads)
               : reduce<std::uint64_t>(stream, in.as<const T>(), target, merged, plan.threads);
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
    return broadcast(functors::Divide(), stream_of(context), Operand<T>{in.as<const T>()}, kept,
                     Operand<T>::of(divisor), Shape(), out.as<T>(), shape, count);
  });
}

}  // namespace ebb::cuda
