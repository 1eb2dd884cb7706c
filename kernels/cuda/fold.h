// Reductions by any fold, over any axes.
#pragma once
#include <cuda_runtime.h>

#include "ebb/core/kernels/kernel.h"
#include "ebb/kernels/cuda/launch.h"
#include "ebb/kernels/cuda/plans/reduce_plan.h"
#include "ebb/kernels/cuda/walk.h"

namespace ebb::cuda {

// A block makes `plan.width` results at a time and splits its threads evenly among them. Their
// states are merged by halves. A Fold has
//   State: summary of some terms, without a constructor
//   none(): the state of no terms
//   gather(result, begin, end, lane, lanes): a lane's share of the terms from begin to end
//   merge(State&, const State&): adds the terms of another state
//   write(result, State): stores the result
// It is called in an order fixed by the plan. Null `partial`: there is one part.
template <class Fold>
__global__ void __launch_bounds__(kRowThreads)
    fold_kernel(Fold fold, SumPlan plan, typename Fold::State* partial) {
  using State = typename Fold::State;
  __shared__ State states[kRowThreads];
  const int thread = static_cast<int>(threadIdx.x), width = plan.width, lanes = kRowThreads / width;
  const int slot = plan.by_rows ? thread / lanes : thread % width;
  const int lane = plan.by_rows ? thread % lanes : thread / width;
  const int apart = plan.by_rows ? 1 : width;
  const std::int64_t groups = divide_up(plan.results, width);
  for (std::int64_t item = blockIdx.x; item < groups * plan.parts; item += gridDim.x) {
    const std::int64_t part = item / groups;
    const std::int64_t result = (item - part * groups) * width + slot;
    State state = fold.none();
    if (result < plan.results) {
      const std::int64_t begin = part * plan.part, rest = plan.terms - begin;
      state =
          fold.gather(result, begin, begin + (rest < plan.part ? rest : plan.part), lane, lanes);
    }
    states[thread] = state;
    __syncthreads();
    for (int half = lanes / 2; half > 0; half /= 2) {
      if (lane < half) {
        fold.merge(state, states[thread + half * apart]);
        states[thread] = state;
      }
      __syncthreads();
    }
    if (lane == 0 && result < plan.results) {
      if (partial != nullptr)
        partial[part * plan.results + result] = state;
      else
        fold.write(result, state);
    }
  }
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
  const std::int64_t items = divide_up(plan.results, plan.width) * plan.parts;
  return launch(stream, fold_kernel<Fold>, blocks_for(items, 1), kRowThreads, fold, plan, partial);
}

// Folds the terms of each result. The workspace has room for the plan's parts, if there are
// several.
template <class Fold>
Status fold(cudaStream_t stream, const Fold& fold, const SumPlan& plan, void* workspace) noexcept {
  if (plan.results == 0) return {};
  if (plan.parts == 1) return launch_fold(stream, fold, plan, nullptr);
  auto* const partial = static_cast<typename Fold::State*>(workspace);
  const Status status = launch_fold(stream, fold, plan, partial);
  if (!status.ok()) return status;
  SumPlan of_parts = plan_columns(1, plan.parts, plan.results);
  of_parts.parts = 1;
  of_parts.part = plan.parts;
  return launch_fold(stream, FoldParts<Fold>{fold, partial, plan.results}, of_parts, nullptr);
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

// A fold of elements one by one: add(State&, T x, i) adds the i-th element of a result.
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
    for (std::int64_t i = begin + lane; i < end; i += lanes)
      each.add(state, from[walks.reduced.offset(i)], i);
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
