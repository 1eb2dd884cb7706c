// Sums of integers and of bool. Exact, since 64-bit sums do not depend on the order.
#include "ebb/core/kernels/reduce.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/fill.h"
#include "ebb/kernels/cuda/plans/reduce_plan.h"
#include "ebb/kernels/cuda/walk.h"

namespace ebb::cuda {
namespace {

// Wraps around, as sums of i64 do.
using Total = unsigned long long;

enum class Form { sum, any, all };

// The output of a count, or of parts of it, and the conversion of the total.
struct Counted {
  void* out;  // i64, or bool
  Total* partial;
  Form form;
  std::int64_t results, parts, part, terms;

  __device__ void finish(std::int64_t result, Total total) const {
    if (form == Form::sum) {
      static_cast<std::int64_t*>(out)[result] = static_cast<std::int64_t>(total);
    } else {
      static_cast<bool*>(out)[result] =
          form == Form::any ? total != 0 : total == static_cast<Total>(terms);
    }
  }
  __device__ void write(std::int64_t index, std::int64_t result, Total total) const {
    if (partial != nullptr) {
      partial[index * results + result] = total;
    } else {
      finish(result, total);
    }
  }
};

// Offsets of the sums and of the terms of each. Three axes each suffice: a tensor has six, and
// after merging reduced and kept axes alternate.
template <class Index>
struct Terms {
  Walk<Index, 3> sums, terms;
};

// A block makes `width` neighbouring sums. The threads of a sum share its terms evenly and add
// their totals by halves.
template <class T, class Index>
__global__ void count_kernel(const T* in, Counted target, Terms<Index> shape, int width) {
  __shared__ Total totals[kRowThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int own = thread / width, threads = kRowThreads / width;
  const std::int64_t strips = divide_up(target.results, width);
  for (std::int64_t item = blockIdx.x; item < strips * target.parts; item += gridDim.x) {
    const std::int64_t part = item / strips;
    const std::int64_t result = (item - part * strips) * width + (thread & (width - 1));
    Total total = 0;
    if (result < target.results) {
      const T* from = in + shape.sums.offset(result);
      const std::int64_t begin = part * target.part, end = begin + target.part;
      const std::int64_t last = end < target.terms ? end : target.terms;
      for (std::int64_t i = begin + own; i < last; i += threads)
        total += static_cast<Total>(from[shape.terms.offset(i)]);
    }
    totals[thread] = total;
    __syncthreads();
    for (int half = kRowThreads / 2; half >= width; half /= 2) {
      if (thread < half) totals[thread] += totals[thread + half];
      __syncthreads();
    }
    if (thread < width && result < target.results) target.write(part, result, totals[thread]);
    __syncthreads();
  }
}

struct AddCounts {
  Counted target;

  template <int N>
  __device__ void at(std::int64_t i) const {
    Total total = 0;
    for (std::int64_t part = 0; part < target.parts; ++part)
      total += target.partial[part * target.results + i];
    target.finish(i, total);
  }
};

template <class T, class Index>
Status count(cudaStream_t stream, const T* in, const Counted& target, const MergedAxes& axes,
             int width) noexcept {
  Terms<Index> shape;
  (axes.inner_reduced ? shape.terms : shape.sums).add(axes.inner, {1});
  for (int g = 0; g < axes.groups; ++g)
    (axes.reduced[g] ? shape.terms : shape.sums).add(axes.size[g], {axes.stride[g]});
  const std::int64_t items = divide_up(target.results, width) * target.parts;
  const Status first = launch(stream, count_kernel<T, Index>, blocks_for(items, 1), kRowThreads, in,
                              target, shape, width);
  if (!first.ok() || target.partial == nullptr) return first;
  Status second = for_each<1>(stream, AddCounts{target}, target.results, false);
  if (!second.ok()) second.refused = false;  // the parts are written
  return second;
}

Status reduce(const KernelContext& context, Form form) noexcept {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const std::int64_t elements = in.elements(), results = out.elements();
  cudaStream_t stream = stream_of(context);
  if (results == 0) return {};
  if (elements == 0)
    return form == Form::sum ? fill_with(stream, out.as<std::int64_t>(), std::int64_t{0}, results)
                             : fill_with(stream, out.as<bool>(), form == Form::all, results);
  const MergedAxes axes(in.spec.shape, context.attribute<Reduction>().axes);
  const SumPlan plan = plan_sum(axes);
  const Counted target{
      out.data,   plan.parts == 1 ? nullptr : static_cast<Total*>(context.workspace),
      form,       plan.results,
      plan.parts, plan.part,
      plan.terms};
  // For short rows a block takes several at a time.
  int width = axes.inner_reduced ? kRowThreads : plan.threads;
  while (axes.inner_reduced && width > 1 && kRowThreads / width < plan.terms) width /= 2;
  return for_stored_integer(in.spec.dtype, [&]<class T>(T) {
    const T* from = in.as<const T>();
    return with_index(elements, [&]<class Index>(Index) {
      return count<T, Index>(stream, from, target, axes, width);
    });
  });
}

}  // namespace

Status sum_integers(const KernelContext& context) { return reduce(context, Form::sum); }
Status any(const KernelContext& context) { return reduce(context, Form::any); }
Status all(const KernelContext& context) { return reduce(context, Form::all); }

}  // namespace ebb::cuda
