// Sums for each channel of [batch, channels, inner], in an order fixed by the shape.
#pragma once
#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/fold.h"
#include "ebb/kernels/cuda/plans/norm_plan.h"

namespace ebb::cuda {

// a / b, faster for the common case that both fit 32 bits.
__device__ inline std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if (b == 1) return a;
  if (((a | b) >> 32) == 0) return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  return a / b;
}

// The sums of Term::kSums terms for each channel, in runs of 8 added up in double. Ends with
// finish(c, sums).
template <class Term, class Finish>
struct ChannelSums {
  using A = typename Term::A;
  static constexpr int kSums = Term::kSums;
  struct State {
    double sums[kSums];
  };
  NormView view;
  Term term;
  Finish finish;

  __device__ State none() const { return {}; }
  __device__ State gather(std::int64_t c, std::int64_t begin, std::int64_t end, int lane,
                          int lanes) const {
    constexpr int kRun = 8;
    State total = {};
    A run[kSums] = {};
    int in_run = 0;
    for (std::int64_t t = begin + lane; t < end; t += lanes) {
      const std::int64_t row = quotient(t, view.inner);
      A terms[kSums];
      term((row * view.channels + c) * view.inner + (t - row * view.inner), row, c, terms);
      for (int k = 0; k < kSums; ++k) run[k] += terms[k];
      if (++in_run < kRun) continue;
      for (int k = 0; k < kSums; ++k) {
        total.sums[k] += static_cast<double>(run[k]);
        run[k] = 0;
      }
      in_run = 0;
    }
    for (int k = 0; k < kSums; ++k) total.sums[k] += static_cast<double>(run[k]);
    return total;
  }
  __device__ void merge(State& total, const State& other) const {
    for (int k = 0; k < kSums; ++k) total.sums[k] += other.sums[k];
  }
  __device__ void write(std::int64_t c, const State& total) const { finish(c, total.sums); }
};

template <class Term, class Finish>
Status sum_channels(cudaStream_t stream, const NormView& view, double* partial, const Term& term,
                    const Finish& finish) noexcept {
  return fold(stream, ChannelSums<Term, Finish>{view, term, finish}, plan_channels(view), partial);
}

// Terms for the gradients of shift and scale: dy, and dy (x - mean) / sqrt(..).
template <class T>
struct GradientTerm {
  using A = Accumulate<T>;
  static constexpr int kSums = 2;
  const T *dy, *x;
  const A *mean, *inverse;  // null mean: 0
  std::int64_t groups, per_group;
  bool products;

  __device__ void operator()(std::int64_t at, std::int64_t row, std::int64_t c,
                             A (&terms)[kSums]) const {
    terms[0] = static_cast<A>(dy[at]);
    terms[1] = 0;
    if (!products) return;
    const std::int64_t i = groups == 0 ? c : groups == 1 ? row : row * groups + c / per_group;
    const A distance = static_cast<A>(x[at]) - (mean == nullptr ? A(0) : mean[i]);
    terms[1] = terms[0] * (distance * inverse[i]);
  }
};

}  // namespace ebb::cuda
