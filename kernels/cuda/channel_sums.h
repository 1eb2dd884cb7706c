// Sums for each channel of [batch, channels, inner], in an order fixed by the shape.
#pragma once
#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/grid.h"
#include "ebb/kernels/cuda/group.h"
#include "ebb/kernels/cuda/plans/norm_plan.h"

namespace ebb::cuda {

// a / b, faster for the common case that both fit 32 bits.
__device__ inline std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if (b == 1) return a;
  if (((a | b) >> 32) == 0) return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  return a / b;
}

// Writes the sums of each part: partial[(part * sums + k) * channels + c]. A block sums up to 32
// neighbouring channels, or one channel if there is an inner axis. Its threads share the terms
// evenly and add runs of 8 terms up in double.
template <class Term>
__global__ void channel_sums_kernel(NormView view, SumPlan plan, double* partial, Term term) {
  using A = typename Term::A;
  constexpr int kSums = Term::kSums, kRun = 8;
  __shared__ double totals[kSums * kRowThreads];
  const int thread = static_cast<int>(threadIdx.x), width = plan.threads;
  const std::int64_t strips = divide_up(view.channels, width);
  for (std::int64_t item = blockIdx.x; item < strips * plan.parts; item += gridDim.x) {
    const std::int64_t part = item / strips;
    const std::int64_t c = (item - part * strips) * width + (thread & (width - 1));
    const std::int64_t begin = part * plan.part, stop = begin + plan.part;
    const std::int64_t end = stop < plan.terms ? stop : plan.terms;
    double total[kSums] = {};
    A run[kSums] = {};
    int in_run = 0;
    if (c < view.channels)
      for (std::int64_t t = begin + thread / width; t < end; t += kRowThreads / width) {
        const std::int64_t row = quotient(t, view.inner);
        A terms[kSums];
        term((row * view.channels + c) * view.inner + (t - row * view.inner), row, c, terms);
        for (int k = 0; k < kSums; ++k) run[k] += terms[k];
        if (++in_run < kRun) continue;
        for (int k = 0; k < kSums; ++k) {
          total[k] += static_cast<double>(run[k]);
          run[k] = 0;
        }
        in_run = 0;
      }
    for (int k = 0; k < kSums; ++k)
      totals[k * kRowThreads + thread] = total[k] + static_cast<double>(run[k]);
    __syncthreads();
    for (int half = kRowThreads / 2; half >= width; half /= 2) {
      if (thread < half)
        for (int k = 0; k < kSums; ++k)
          totals[k * kRowThreads + thread] += totals[k * kRowThreads + thread + half];
      __syncthreads();
    }
    if (thread < width && c < view.channels)
      for (int k = 0; k < kSums; ++k)
        partial[(part * kSums + k) * view.channels + c] = totals[k * kRowThreads + thread];
    __syncthreads();
  }
}

// Calls finish(c, the sums over all parts), with a warp for each channel.
template <int kSums, class Finish>
__global__ void finish_channels_kernel(std::int64_t channels, std::int64_t parts,
                                       const double* partial, Finish finish) {
  const LaneGroup group(kWarp, nullptr);
  for_rows(group, channels, [&](std::int64_t c, bool there) {
    double totals[kSums];
    for (int k = 0; k < kSums; ++k) {
      double total = 0;
      for (std::int64_t part = group.thread(); part < parts; part += kWarp)
        total += partial[(part * kSums + k) * channels + c];
      totals[k] = group.sum(total);
    }
    if (there && group.thread() == 0) finish(c, totals);
  });
}

template <class Term, class Finish>
Status sum_channels(cudaStream_t stream, const NormView& view, double* partial, const Term& term,
                    const Finish& finish) noexcept {
  if (view.channels == 0) return {};
  const SumPlan plan = plan_channels(view);
  const std::int64_t blocks = divide_up(view.channels, plan.threads) * plan.parts;
  const Status sums = launch(stream, channel_sums_kernel<Term>, blocks_for(blocks, 1), kRowThreads,
                             view, plan, partial, term);
  if (!sums.ok()) return sums;
  return launch(stream, finish_channels_kernel<Term::kSums, Finish>,
                blocks_for(view.channels, kRowThreads / kWarp), kRowThreads, view.channels,
                plan.parts, partial, finish);
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
