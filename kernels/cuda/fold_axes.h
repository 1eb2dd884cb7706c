// Reductions over any axes by any fold.
#pragma once
#include <cuda_runtime.h>

#include "ebb/kernels/cuda/grid.h"
#include "ebb/kernels/cuda/launch.h"
#include "ebb/kernels/cuda/plans/reduce_plan.h"
#include "ebb/kernels/cuda/walk.h"

namespace ebb::cuda {

// The input of a reduction and its layout. No more than three axes are reduced, or kept, since
// after merging the two kinds alternate. A Fold has
//   State: summary of some elements, without a constructor
//   none(): the state of no elements
//   add(State&, T x, i): adds the i-th element of a result
//   merge(State&, const State&): adds the elements of another state
//   write(folded, result, State): stores the result
// It is called in an order fixed by the shape.
template <class Fold, class T, class Index>
struct Folded {
  using State = typename Fold::State;
  const T* in;
  State* partial;  // [parts, results]; null: one part
  Walk<Index, 3> kept, reduced;
  SumPlan plan;
  Fold fold;

  Folded(const T* in, const MergedAxes& axes, const SumPlan& plan, void* workspace,
         const Fold& fold) noexcept
      : in(in),
        partial(plan.parts == 1 ? nullptr : static_cast<State*>(workspace)),
        plan(plan),
        fold(fold) {
    (axes.inner_reduced ? reduced : kept).add(axes.inner, {1});
    for (int g = 0; g < axes.groups; ++g)
      (axes.reduced[g] ? reduced : kept).add(axes.size[g], {axes.stride[g]});
  }
};

// A block makes `width` results at a time and splits its threads evenly among them. The threads of
// a result are neighbours if its terms are neighbours in memory (by_rows); otherwise they are
// `width` apart, so that neighbouring threads have neighbouring results. Their states are merged by
// halves.
template <class Fold, class T, class Index>
__global__ void __launch_bounds__(kRowThreads)
    fold_kernel(Folded<Fold, T, Index> work, int width, bool by_rows) {
  using State = typename Fold::State;
  __shared__ State states[kRowThreads];
  const int thread = static_cast<int>(threadIdx.x), lanes = kRowThreads / width;
  const int slot = by_rows ? thread / lanes : thread % width;
  const int lane = by_rows ? thread % lanes : thread / width;
  const int apart = by_rows ? 1 : width;
  const SumPlan& plan = work.plan;
  const std::int64_t groups = divide_up(plan.results, width);
  for (std::int64_t item = blockIdx.x; item < groups * plan.parts; item += gridDim.x) {
    const std::int64_t part = item / groups;
    const std::int64_t result = (item - part * groups) * width + slot;
    State state = work.fold.none();
    if (result < plan.results) {
      const T* from = work.in + work.kept.offset(result);
      const std::int64_t begin = part * plan.part, rest = plan.terms - begin;
      const std::int64_t end = begin + (rest < plan.part ? rest : plan.part);
      for (std::int64_t i = begin + lane; i < end; i += lanes)
        work.fold.add(state, from[work.reduced.offset(i)], i);
    }
    states[thread] = state;
    __syncthreads();
    for (int half = lanes / 2; half > 0; half /= 2) {
      if (lane < half) {
        work.fold.merge(state, states[thread + half * apart]);
        states[thread] = state;
      }
      __syncthreads();
    }
    if (lane == 0 && result < plan.results) {
      if (work.partial != nullptr)
        work.partial[part * plan.results + result] = state;
      else
        work.fold.write(work, result, state);
    }
  }
}

// Merges the parts of each result, in the order of their elements.
template <class Fold, class T, class Index>
__global__ void __launch_bounds__(kThreads) fold_parts_kernel(Folded<Fold, T, Index> work) {
  const std::int64_t results = work.plan.results;
  for (std::int64_t result = grid_thread(); result < results; result += grid_threads()) {
    typename Fold::State state = work.partial[result];
    for (std::int64_t part = 1; part < work.plan.parts; ++part)
      work.fold.merge(state, work.partial[part * results + result]);
    work.fold.write(work, result, state);
  }
}

// Reduces to at least one result. The workspace has fold_bytes() (plans/reduce_plan.h).
template <class T, class Fold>
Status fold_axes(const KernelContext& context, std::uint32_t axes, const Fold& fold) noexcept {
  const Buffer& in = context.inputs[0];
  const MergedAxes merged(in.spec.shape, axes);
  const SumPlan plan = plan_sum(merged);
  const int width = merged.inner_reduced ? rows_of_block(plan.threads) : plan.threads;
  const std::int64_t items = divide_up(plan.results, width) * plan.parts;
  cudaStream_t stream = stream_of(context);
  return with_index(in.elements(), [&]<class Index>(Index) {
    const Folded<Fold, T, Index> work(in.as<const T>(), merged, plan, context.workspace, fold);
    const Status status = launch(stream, fold_kernel<Fold, T, Index>, blocks_for(items, 1),
                                 kRowThreads, work, width, merged.inner_reduced);
    if (!status.ok() || plan.parts == 1) return status;
    return launch(stream, fold_parts_kernel<Fold, T, Index>, blocks_for(plan.results), kThreads,
                  work);
  });
}

}  // namespace ebb::cuda
