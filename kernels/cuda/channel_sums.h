// Sums for each channel of [batch, channels, inner], in an order fixed by the shape.
#pragma once
#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/fold.h"
#include "ebb/kernels/cuda/plans/norm_plan.h"
#include "ebb/kernels/cuda/walk.h"

namespace ebb::cuda {

// a / b, faster for the common case that both fit 32 bits.
__device__ inline std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if (b == 1) return a;
  if (((a | b) >> 32) == 0) return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  return a / b;
}

// Two sums of eight would need more registers than there are.
template <class T>
inline constexpr int kChannelPack = kPack<T> < 4 ? kPack<T> : 4;

// Term::kSums sums for each channel (lane_sums). Packed: packs of neighbours in a channel are read.
// A Term has operator()<N>(at, i): the terms of each sum at N neighbours, which are normalised by
// the i-th mean. Ends with finish(c, sums).
template <class T, class Term, class Finish>
struct ChannelSums {
  static constexpr int kSums = Term::kSums;
  using State = Pack<double, kSums>;
  NormView view;
  AnyDivider by_group, by_inner;
  Term term;
  Finish finish;
  bool packed;

  __device__ State none() const { return {}; }
  __device__ State gather(std::int64_t c, std::int64_t begin, std::int64_t end, int lane,
                          int lanes) const {
    const auto group = static_cast<std::int64_t>(by_group.quotient(static_cast<std::uint64_t>(c)));
    const auto terms = [&]<int N>(std::int64_t t) {
      const std::int64_t row = by_inner.divide(t);
      return term.template operator()<N>((row * view.channels + c) * view.inner + t,
                                         row * view.groups + group);
    };
    return lane_sums<kChannelPack<T>, kSums, 4>(packed, begin, end, lane, lanes, terms);
  }
  __device__ void merge(State& total, const State& other) const { total += other; }
  __device__ void write(std::int64_t c, const State& total) const { finish(c, total.elements); }
};

template <class T, class Term, class Finish>
Status sum_channels(cudaStream_t stream, const NormView& view, double* partial, const Term& term,
                    const Finish& finish) noexcept {
  const bool packed =
      term.template takes_packs<kChannelPack<T>>() && view.inner % kChannelPack<T> == 0;
  return fold(stream,
              ChannelSums<T, Term, Finish>{view, AnyDivider(view.per_group()),
                                           AnyDivider(view.inner), term, finish, packed},
              plan_channels(view), partial);
}

// Terms for the gradients of shift and scale: dy, and dy (x - mean) / sqrt(..).
template <class T>
struct GradientTerm {
  using A = Accumulate<T>;
  static constexpr int kSums = 2;
  const T *dy, *x;
  const A *mean, *inverse;  // null mean: 0
  bool products;

  template <int N>
  bool takes_packs() const noexcept {
    return cuda::takes_packs<N>(dy, x);
  }
  template <int N>
  __device__ Pack<A, 2 * N> operator()(std::int64_t at, std::int64_t i) const {
    Pack<A, 2 * N> terms = {};
    const Pack<A, N> slopes = as_pack<A>(load<N>(dy + at));
    for (int j = 0; j < N; ++j) terms[j] = slopes[j];
    if (!products) return terms;
    const Pack<A, N> values = as_pack<A>(load<N>(x + at));
    for (int j = 0; j < N; ++j)
      terms[N + j] = slopes[j] * ((values[j] - (mean == nullptr ? A(0) : mean[i])) * inverse[i]);
    return terms;
  }
};

// Writes the gradients of scale and shift, each or null, and means of both kinds of terms.
template <class T>
struct WriteGradients {
  T *d_scale, *d_shift;
  Accumulate<T>* means = nullptr;  // [2, channels], or null
  std::int64_t channels = 0;
  double terms = 1;

  __device__ void operator()(std::int64_t c, const double (&totals)[2]) const {
    if (d_shift != nullptr) d_shift[c] = convert<T>(totals[0]);
    if (d_scale != nullptr) d_scale[c] = convert<T>(totals[1]);
    if (means == nullptr) return;
    means[c] = static_cast<Accumulate<T>>(totals[0] / terms);
    means[channels + c] = static_cast<Accumulate<T>>(totals[1] / terms);
  }
};

}  // namespace ebb::cuda
