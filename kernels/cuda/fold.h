// Reductions by any fold, over any axes.
#pragma once
#include <cuda_runtime.h>

#include "ebb/core/kernels/kernel.h"
#include "ebb/kernels/cuda/fold_block.h"
#include "ebb/kernels/cuda/launch.h"
#include "ebb/kernels/cuda/plans/reduce_plan.h"
#include "ebb/kernels/cuda/walk.h"

namespace ebb::cuda {

// Three blocks a multiprocessor leave 80 registers a thread, two 128. Without a bound ptxas aims at
// more blocks, and spills.
template <class Fold>
__global__ void __launch_bounds__(kRowThreads, sizeof(typename Fold::State) > 16 ? 2 : 3)
    fold_kernel(Fold fold, SumPlan plan, typename Fold::State* partial) {
  fold_block(fold, plan, partial);
}

// Merges the parts [parts, results] of each result.
template <class Fold>
struct FoldParts {
  using State = typename Fold::State;
  Fold fold;
  const State* partial;
  std::int64_t results;

  __device__ State none() const { return fold.none(); }
  __device__ State gather(std::int64_t result, std::int64_t begin, std::int64_t end, int lane,
                          int lanes) const {
    State state = fold.none();
    for (std::int64_t part = begin + lane; part < end; part += lanes)
      fold.merge(state, partial[part * results + result]);
    return state;
  }
  __device__ void merge(State& state, const State& other) const { fold.merge(state, other); }
  __device__ void write(std::int64_t result, const State& state) const {
    fold.write(result, state);
  }
};

template <class Fold>
Status launch_fold(cudaStream_t stream, const Fold& fold, const SumPlan& plan,
                   typename Fold::State* partial) noexcept {
  return launch(stream, fold_kernel<Fold>, blocks_for(plan.turns() * plan.parts, 1), kRowThreads,
                fold, plan, partial);
}

// Merges the parts of each result.
template <class Fold>
Status fold_parts(cudaStream_t stream, const Fold& fold, const SumPlan& plan,
                  const typename Fold::State* partial) noexcept {
  SumPlan of_parts = plan_columns(1, plan.parts, plan.results);
  of_parts.parts = 1;
  of_parts.part = plan.parts;
  return launch_fold(stream, FoldParts<Fold>{fold, partial, plan.results}, of_parts, nullptr);
}

// Folds the terms of each result. The workspace has room for the plan's parts, if there are
// several.
template <class Fold>
Status fold(cudaStream_t stream, const Fold& fold, const SumPlan& plan, void* workspace) noexcept {
  if (plan.results == 0) return {};
  auto* const partial = static_cast<typename Fold::State*>(workspace);
  const Status status = launch_fold(stream, fold, plan, partial);
  return status.ok() && plan.parts > 1 ? fold_parts(stream, fold, plan, partial) : status;
}

// Offsets of the first term of each result, and of its other terms. Three axes each suffice: a
// tensor has six, and after merging reduced and kept axes alternate.
template <class Index>
struct FoldWalks {
  Walk<Index, 3> kept, reduced;

  FoldWalks() = default;
  explicit FoldWalks(const MergedAxes& axes) noexcept {
    (axes.inner_reduced ? reduced : kept).add(axes.inner, {1});
    for (int g = 0; g < axes.groups; ++g)
      (axes.reduced[g] ? reduced : kept).add(axes.size[g], {axes.stride[g]});
  }
};

// A fold of elements in runs: add(State&, const T (&x)[kRun<T>], count, i, step) adds the first
// `count` of x, the elements i, i + step, .. of a result.
template <class T>
inline constexpr int kRun = sizeof(T) == 8 ? 4 : 8;
template <class Each, class T, class Index>
struct FoldEach {
  using State = typename Each::State;
  Each each;
  const T* in;
  FoldWalks<Index> walks;

  __device__ State none() const { return each.none(); }
  __device__ State gather(std::int64_t result, std::int64_t begin, std::int64_t end, int lane,
                          int lanes) const {
    State state = each.none();
    const T* const from = in + walks.kept.offset(result);
    for (std::int64_t i = begin + lane; i < end; i += kRun<T> * lanes) {
      T x[kRun<T>];
      int count = 0;
      for (int k = 0; k < kRun<T>; ++k) {
        const std::int64_t at = i + k * lanes;
        if (at >= end) continue;
        x[k] = from[walks.reduced.offset(at)];
        count = k + 1;
      }
      each.add(state, x, count, i, lanes);
    }
    return state;
  }
  __device__ void merge(State& state, const State& other) const { each.merge(state, other); }
  __device__ void write(std::int64_t result, const State& state) const {
    each.write(*this, result, state);
  }
};

// Reduces the first input to at least one result. The workspace has fold_bytes()
// (plans/reduce_plan.h).
template <class T, class Each>
Status fold_axes(const KernelContext& context, std::uint32_t axes, const Each& each) noexcept {
  const Buffer& in = context.inputs[0];
  const MergedAxes merged(in.spec.shape, axes);
  return with_index(in.elements(), [&]<class Index>(Index) {
    const FoldEach<Each, T, Index> of{each, in.as<const T>(), FoldWalks<Index>(merged)};
    return fold(stream_of(context), of, plan_sum(merged), context.workspace);
  });
}

}  // namespace ebb::cuda
