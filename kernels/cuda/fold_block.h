// A block's part of a reduction, and the fold that sums. NVRTC compiles them too, for chains that
// end in a sum.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cuda/pack.h"
#include "ebb/kernels/cuda/plans/sum_plan.h"

namespace ebb::cuda {

// A block makes `plan.width` results at a time and splits its threads evenly among them. Their
// states are merged by halves. A Fold has
//   State: summary of some terms, without a constructor
//   none(): the state of no terms
//   gather(result, begin, end, lane, lanes): a lane's share of the terms from begin to end
//   merge(State&, const State&): adds the terms of another state
//   write(result, State): stores the result
// It is called in an order fixed by the plan. Where that has several parts, their states go to
// `partial` [parts, results].
template <class Fold>
__device__ inline void fold_block(const Fold& fold, const SumPlan& plan,
                                  typename Fold::State* partial) {
  using State = typename Fold::State;
  __shared__ State states[kRowThreads];
  const int thread = static_cast<int>(threadIdx.x), width = plan.width, lanes = kRowThreads / width;
  const int slot = plan.by_rows ? thread / lanes : thread % width;
  const int lane = plan.by_rows ? thread % lanes : thread / width;
  const int apart = plan.by_rows ? 1 : width;
  const std::int64_t groups = plan.turns();
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
      if (plan.parts > 1)
        partial[part * plan.results + result] = state;
      else
        fold.write(result, state);
    }
  }
}

// M sums of term(i)[m] for i = first, first + step, .. below end: runs of terms in their own type,
// added up in double.
template <int kRun, int M, class Term>
__device__ inline Pack<double, M> strided_sums(std::int64_t first, std::int64_t end,
                                               std::int64_t step, const Term& term) {
  Pack<double, M> totals = {};
  std::int64_t i = first;
  for (; i + (kRun - 1) * step < end; i += kRun * step) {
    auto run = term(i);
    for (int k = 1; k < kRun; ++k) run += term(i + k * step);
    totals += run;
  }
  decltype(term(first)) rest = {};
  for (; i < end; i += step) rest += term(i);
  totals += rest;
  return totals;
}

// The sums of each N of N * M elements.
template <int M, class T, int kAll>
__device__ inline Pack<T, M> sums_of(Pack<T, kAll> x) {
  constexpr int N = kAll / M;
  Pack<T, M> sums;
  for (int m = 0; m < M; ++m) {
    for (int half = N / 2; half > 0; half /= 2)
      for (int j = 0; j < half; ++j) x[m * N + j] += x[m * N + j + half];
    sums[m] = x[m * N];
  }
  return sums;
}

// A lane's share of M sums of the terms from begin to end, in runs of kRun terms. Packed: in runs
// of half as many packs of N neighbours. load.operator()<N>(i) gives N terms of each sum, from the
// i-th on, side by side.
template <int N, int M = 1, int kRun = 8, class Load>
__device__ inline Pack<double, M> lane_sums(bool packed, std::int64_t begin, std::int64_t end,
                                            int lane, int lanes, const Load& load) {
  const auto one = [&](std::int64_t i) { return load.template operator()<1>(i); };
  if (!packed) return strided_sums<kRun, M>(begin + lane, end, lanes, one);
  const std::int64_t packs = (end - begin) / N;
  Pack<double, M> totals = strided_sums<kRun / 2, M>(lane, packs, lanes, [&](std::int64_t i) {
    return sums_of<M>(load.template operator()<N>(begin + i * N));
  });
  for (std::int64_t i = begin + packs * N + lane; i < end; i += lanes) totals += one(i);
  return totals;
}

// Sums (lane_sums). Terms has
//   begin(result): a number for the result
//   load<N>(begin, i): N of its terms from the i-th on, as they are summed
template <class T, class Terms>
struct Sum {
  using State = double;
  Terms terms;
  T* out;
  double divisor;
  bool packed;

  __device__ double none() const { return 0; }
  __device__ double gather(std::int64_t result, std::int64_t begin, std::int64_t end, int lane,
                           int lanes) const {
    const std::int64_t first = terms.begin(result);
    return lane_sums<kPack<T>>(packed, begin, end, lane, lanes, [&]<int N>(std::int64_t i) {
      return terms.template load<N>(first, i);
    })[0];
  }
  __device__ void merge(double& total, double other) const { total += other; }
  __device__ void write(std::int64_t result, double total) const {
    out[result] = convert<T>(total / divisor);
  }
};

}  // namespace ebb::cuda
