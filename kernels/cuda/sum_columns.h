#pragma once
#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cuda/column_sum.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/grid.h"
#include "ebb/kernels/cuda/strided_sum.h"
#include "ebb/kernels/cuda/walk.h"

namespace ebb::cuda {

// Three axes suffice: a tensor has six, and after merging reduced and kept axes alternate.
template <class Index>
using SumWalk = Walk<Index, 3>;

// The output of sums, or of their parts.
template <class T>
struct SumTarget {
  T* out;
  double divisor;
  double* partial;  // [parts, results]; null: one part
  std::int64_t results, parts, part, terms;

  SumTarget(const SumPlan& plan, T* out, double divisor, void* workspace) noexcept
      : out(out),
        divisor(divisor),
        partial(plan.parts == 1 ? nullptr : static_cast<double*>(workspace)),
        results(plan.results),
        parts(plan.parts),
        part(plan.part),
        terms(plan.terms) {}

  __device__ std::int64_t begin(std::int64_t index) const { return index * part; }
  __device__ std::int64_t end(std::int64_t index) const {
    const std::int64_t end = (index + 1) * part;
    return end < terms ? end : terms;
  }
  __device__ void write(std::int64_t index, std::int64_t result, double total) const {
    if (partial != nullptr) {
      partial[index * results + result] = total;
    } else {
      out[result] = convert<T>(total / divisor);
    }
  }
  // Launches the second kernel, if there are parts.
  Status finish(cudaStream_t stream, Status first) const noexcept {
    if (!first.ok() || partial == nullptr) return first;
    return add_parts(stream, partial, out, parts, results, divisor);
  }
};

// The matrices whose columns are summed.
template <class Index>
struct Columns {
  SumWalk<Index> outer, rows;  // offset of a matrix; of its row
  std::int64_t matrices, columns;
};

// A block sums up to 32 neighbouring columns. The threads of a column share its rows evenly and add
// their totals by halves.
template <class In, class Out, class Index>
__global__ void sum_columns_kernel(const In* in, SumTarget<Out> target, Columns<Index> shape,
                                   int width) {
  __shared__ double totals[kRowThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / width, rows = kRowThreads / width;
  const std::int64_t strips = divide_up(shape.columns, width);
  const std::int64_t items = shape.matrices * strips * target.parts;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const std::int64_t part = item / (shape.matrices * strips);
    const std::int64_t strip_of_all = item - part * (shape.matrices * strips);
    const std::int64_t matrix = strip_of_all / strips;
    const std::int64_t column = (strip_of_all - matrix * strips) * width + (thread & (width - 1));
    const bool active = column < shape.columns;
    double total = 0;
    if (active) {
      const In* from = in + shape.outer.offset(matrix) + column;
      total = strided_sum(target.begin(part) + row, target.end(part), rows, [&](std::int64_t r) {
        return static_cast<Accumulate<In>>(from[shape.rows.offset(r)]);
      });
    }
    totals[thread] = total;
    __syncthreads();
    for (int half = kRowThreads / 2; half >= width; half /= 2) {
      if (thread < half) totals[thread] += totals[thread + half];
      __syncthreads();
    }
    if (thread < width && active)
      target.write(part, matrix * shape.columns + column, totals[thread]);
    __syncthreads();
  }
}

template <class In, class Out, class Index>
Status sum_columns(cudaStream_t stream, const In* in, const SumTarget<Out>& target,
                   const Columns<Index>& shape, int width) noexcept {
  const std::int64_t blocks = shape.matrices * divide_up(shape.columns, width) * target.parts;
  return target.finish(
      stream, launch(stream, sum_columns_kernel<In, Out, Index>, blocks_for(blocks, 1), kRowThreads,
                     in, target, shape, width));
}

}  // namespace ebb::cuda
