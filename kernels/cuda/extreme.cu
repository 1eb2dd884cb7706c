#include "ebb/core/kernels/order.h"
#include "ebb/kernels/cuda/grid.h"
#include "ebb/kernels/cuda/host/reduce_plan.h"
#include "ebb/kernels/cuda/launch.h"
#include "ebb/kernels/cuda/order_key.h"
#include "ebb/kernels/cuda/walk.h"

namespace ebb::cuda {
namespace {

// Kinds of axes alternate: no more than three are reduced, or kept.
template <class T, class Index>
struct Extremes {
  const T* in;
  T* values;                // or
  std::int64_t* positions;  // null: values are wanted
  First* partial;           // [parts, results], where there are parts
  Walk<Index, 3> kept, reduced;
  SumPlan plan;
  bool smallest;

  Extremes(const KernelContext& context, const MergedAxes& axes, const SumPlan& how) noexcept
      : in(context.inputs[0].as<const T>()),
        values(context.outputs[0].as<T>()),
        positions(nullptr),
        partial(how.parts == 1 ? nullptr : static_cast<First*>(context.workspace)),
        plan(how),
        smallest(context.attribute<ExtremeAttributes>().smallest != 0) {
    if (context.attribute<ExtremeAttributes>().position != 0)
      positions = context.outputs[0].as<std::int64_t>();
    (axes.inner_reduced ? reduced : kept).add(axes.inner, {1});
    for (int g = 0; g < axes.groups; ++g)
      (axes.reduced[g] ? reduced : kept).add(axes.size[g], {axes.stride[g]});
  }

  __device__ void write(std::int64_t result, const First& first) const {
    if (positions != nullptr)
      positions[result] = first.place;
    else
      values[result] = in[kept.offset(result) + reduced.offset(first.place)];
  }
};

// A block has `width` results at a time, each the work of as many threads as that leaves: they are
// neighbours along rows, or a whole width apart where neighbouring results are neighbours in
// memory. What they find is compared by halves.
template <class T, class Index>
__global__ void __launch_bounds__(kRowThreads)
    extreme_kernel(Extremes<T, Index> work, int width, bool by_rows) {
  __shared__ std::uint64_t keys[kRowThreads];
  __shared__ std::int64_t places[kRowThreads];
  const int thread = static_cast<int>(threadIdx.x), lanes = kRowThreads / width;
  const int slot = by_rows ? thread / lanes : thread % width;
  const int lane = by_rows ? thread % lanes : thread / width;
  const int apart = by_rows ? 1 : width;
  const SumPlan& plan = work.plan;
  const std::int64_t groups = divide_up(plan.results, width);
  for (std::int64_t item = blockIdx.x; item < groups * plan.parts; item += gridDim.x) {
    const std::int64_t part = item / groups;
    const std::int64_t result = (item - part * groups) * width + slot;
    First first;
    if (result < plan.results) {
      const T* from = work.in + work.kept.offset(result);
      const std::int64_t begin = part * plan.part, rest = plan.terms - begin;
      const std::int64_t end = begin + (rest < plan.part ? rest : plan.part);
      for (std::int64_t i = begin + lane; i < end; i += lanes) {
        const std::uint64_t key = key_of(from[work.reduced.offset(i)], work.smallest);
        if (key > first.key || first.place > i) first = {key, i};
      }
    }
    keys[thread] = first.key;
    places[thread] = first.place;
    __syncthreads();
    for (int half = lanes / 2; half > 0; half /= 2) {
      if (lane < half) {
        const int at = thread + half * apart;
        const First other{keys[at], places[at]};
        if (other.is_before(first)) first = other;
        keys[thread] = first.key;
        places[thread] = first.place;
      }
      __syncthreads();
    }
    if (lane == 0 && result < plan.results) {
      if (work.partial != nullptr)
        work.partial[part * plan.results + result] = first;
      else
        work.write(result, first);
    }
  }
}

// Where there are parts, whose order is that of their elements.
template <class T, class Index>
__global__ void extreme_of_parts_kernel(Extremes<T, Index> work) {
  const std::int64_t results = work.plan.results;
  for (std::int64_t result = grid_thread(); result < results; result += grid_threads()) {
    First first = work.partial[result];
    for (std::int64_t part = 1; part < work.plan.parts; ++part) {
      const First other = work.partial[part * results + result];
      if (other.key > first.key) first = other;
    }
    work.write(result, first);
  }
}

template <class T, class Index>
Status run(const KernelContext& context, const MergedAxes& axes, const SumPlan& plan) noexcept {
  cudaStream_t stream = stream_of(context);
  const Extremes<T, Index> work(context, axes, plan);
  const int width = axes.inner_reduced ? rows_of_block(plan.threads) : plan.threads;
  const std::int64_t items = divide_up(plan.results, width) * plan.parts;
  const Status status = launch(stream, extreme_kernel<T, Index>, blocks_for(items, 1), kRowThreads,
                               work, width, axes.inner_reduced);
  if (!status.ok() || plan.parts == 1) return status;
  return launch(stream, extreme_of_parts_kernel<T, Index>, blocks_for(plan.results), kThreads,
                work);
}

}  // namespace

Status extreme(const KernelContext& context) {
  const Buffer& in = context.inputs[0];
  if (context.outputs[0].elements() == 0) return {};
  const MergedAxes axes(in.spec.shape, context.attribute<ExtremeAttributes>().axes);
  const SumPlan plan = plan_sum(axes);
  return for_ordered(in.spec.dtype, [&]<class T>(T) {
    return is_short(in.elements()) ? run<T, std::uint32_t>(context, axes, plan)
                                   : run<T, std::uint64_t>(context, axes, plan);
  });
}

}  // namespace ebb::cuda
