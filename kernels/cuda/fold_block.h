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

// The sum of term(i) for i = first, first + step, .. below end: runs of 8 terms in their own type,
// added up in double.
template <class Term>
__device__ inline double strided_sum(std::int64_t first, std::int64_t end, std::int64_t step,
                                     const Term& term) {
  constexpr int kRun = 8;
  using T = decltype(term(first));
  double total = 0;
  std::int64_t i = first;
  for (; i + (kRun - 1) * step < end; i += kRun * step) {
    T run = term(i);
    for (int k = 1; k < kRun; ++k) run += term(i + k * step);
    total += static_cast<double>(run);
  }
  T rest = 0;
  for (; i < end; i += step) rest += term(i);
  return total + static_cast<double>(rest);
}

template <class T, int N>
__device__ inline T sum_of(Pack<T, N> x) {
  for (int half = N / 2; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) x[j] += x[j + half];
  return x[0];
}

// Sums, in runs of 8 terms (strided_sum). Packed: a term of a run is a pack of neighbours. Terms
// has
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
    const auto one = [&](std::int64_t i) { return terms.template load<1>(first, i)[0]; };
    if (!packed) return strided_sum(begin + lane, end, lanes, one);
    constexpr int N = kPack<T>;
    const std::int64_t packs = (end - begin) / N;
    double total = strided_sum(lane, packs, lanes, [&](std::int64_t i) {
      return sum_of(terms.template load<N>(first, begin + i * N));
    });
    for (std::int64_t i = begin + packs * N + lane; i < end; i += lanes)
      total += static_cast<double>(one(i));
    return total;
  }
  __device__ void merge(double& total, double other) const { total += other; }
  __device__ void write(std::int64_t result, double total) const {
    out[result] = convert<T>(total / divisor);
  }
};

}  // namespace ebb::cuda
