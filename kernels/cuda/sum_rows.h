#pragma once
#include "ebb/kernels/cuda/group.h"
#include "ebb/kernels/cuda/pack.h"
#include "ebb/kernels/cuda/sum_columns.h"

namespace ebb::cuda {

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

}  // namespace ebb::cuda
