#include "ebb/core/kernels/reduce.h"

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/kernels/cuda/broadcast.h"
#include "ebb/kernels/cuda/epilogue.h"
#include "ebb/kernels/cuda/fold.h"
#include "ebb/kernels/cuda/group.h"
#include "ebb/kernels/cuda/stream_memory.h"

namespace ebb::cuda {

Status sum_integers(const KernelContext&);  // kernels/cuda/count.cu

namespace {

// The terms of sums of a tensor.
template <class T, class Index>
struct Elements {
  const T* in;
  FoldWalks<Index> walks;

  __device__ std::int64_t begin(std::int64_t result) const { return walks.kept.offset(result); }
  template <int N>
  __device__ Pack<Accumulate<T>, N> load(std::int64_t begin, std::int64_t i) const {
    return as_pack<Accumulate<T>>(cuda::load<N>(in + begin + walks.reduced.offset(i)));
  }
};
template <class T, class Index>
using SumOf = Sum<T, Elements<T, Index>>;

Status reduce(const KernelContext& context, const Reduction& reduction) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const std::int64_t count = in.elements(), results = out.elements();
  if (results == 0) return {};
  const double divisor = reduction.divisor(count, results);
  cudaStream_t stream = stream_of(context);
  return for_floating(out.spec.dtype, [&]<class T>(T) {
    if (count == results && divisor == 1) return copy(stream, out.data, in.data, out.spec.bytes());
    const MergedAxes axes(in.spec.shape, reduction.axes);
    const T* const from = in.as<const T>();
    constexpr int N = kPack<T>;
    const bool packed =
        axes.inner_reduced && takes_packs<N>(from) && (axes.inner % N == 0 || axes.groups == 0);
    return with_index(count, [&]<class Index>(Index) {
      const Elements<T, Index> terms{from, FoldWalks<Index>(axes)};
      return fold(stream, SumOf<T, Index>{terms, out.as<T>(), divisor, packed}, plan_sum(axes),
                  context.workspace);
    });
  });
}

}  // namespace

Status column_sum(cudaStream_t stream, DType dtype, const void* in, void* out, std::int64_t rows,
                  std::int64_t columns, void* workspace) noexcept {
  return for_floating(dtype, [&]<class T>(T) {
    return with_index(rows * columns, [&]<class Index>(Index) {
      SumOf<T, Index> of{{static_cast<const T*>(in), {}}, static_cast<T*>(out), 1, false};
      of.terms.walks.kept.add(columns, {1});
      of.terms.walks.reduced.add(rows, {columns});
      return fold(stream, of, plan_columns(1, rows, columns), workspace);
    });
  });
}

Status add_parts(cudaStream_t stream, const SumPlan& plan, const double* parts, double divisor,
                 const Buffer& out) noexcept {
  return for_wide(out.spec.dtype, [&]<class T>(T) {
    return fold_parts(stream, SumOf<T, std::uint32_t>{{}, out.as<T>(), divisor, false}, plan,
                      parts);
  });
}

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
  return for_floating(out.spec.dtype, [&]<class T>(T) {
    return broadcast(functors::Divide(), stream_of(context),
                     {Operand<T>{in.as<const T>()}, Operand<T>::of(divisor)}, out.as<T>(),
                     BroadcastWalk(shape, kept, Shape()), count);
  });
}

}  // namespace ebb::cuda
