#include "ebb/core/kernels/statistics.h"

#include <cmath>
#include <limits>

#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/fold.h"

namespace ebb::cuda {
namespace {

using Kind = StatisticAttributes::Kind;

template <class T>
struct Statistic {
  using State = StatisticState;
  T* out;
  int kind;
  double correction;

  __device__ State none() const {
    if (kind == Kind::product) return {0, 1, 0};
    return {kind == Kind::logsumexp ? -std::numeric_limits<double>::infinity() : 0.0, 0, 0};
  }

  __device__ void add(State& state, const T (&x)[kRun<T>], int count, std::int64_t, int) const {
    if (is_variance()) return add_distances(state, x, count);
    for (int k = 0; k < kRun<T>; ++k)
      if (k < count) add(state, static_cast<Accumulate<T>>(x[k]));
  }

  __device__ void merge(State& state, const State& other) const {
    if (kind == Kind::norm1 || kind == Kind::norm2) {
      state.sum += other.sum;
    } else if (kind == Kind::product) {
      state.sum *= other.sum;
    } else if (kind == Kind::logsumexp) {
      const bool is_less = state.center < other.center;
      const double high = is_less ? other.center : state.center;
      const double low = is_less ? state.center : other.center;
      const double factor = low == high ? 1 : std::exp(low - high);
      state.sum = is_less ? other.sum + state.sum * factor : state.sum + other.sum * factor;
      state.center = high;
    } else if (other.count > 0) {
      const double count = state.count + other.count, difference = other.center - state.center;
      const double share = other.count / count;
      state.center += difference * share;
      state.sum += other.sum + difference * difference * state.count * share;
      state.count = count;
    }
  }

  template <class Folded>
  __device__ void write(const Folded&, std::int64_t result, const State& state) const {
    out[result] = convert<T>(value_of(state));
  }
  __device__ double value_of(const State& state) const {
    if (kind == Kind::norm1 || kind == Kind::product) return state.sum;
    if (kind == Kind::norm2) return std::sqrt(state.sum);
    if (kind == Kind::logsumexp) return std::log(state.sum) + state.center;
    if (state.count == 0) return std::numeric_limits<double>::quiet_NaN();
    const double variance = state.sum / (state.count - correction);
    return kind == Kind::variance ? variance : std::sqrt(variance);
  }

 private:
  __device__ bool is_variance() const {
    return kind == Kind::variance || kind == Kind::standard_deviation;
  }
  // Distances from the mean so far, or from the first element, move the mean: one division for all.
  __device__ void add_distances(State& state, const T (&x)[kRun<T>], int count) const {
    const double before = state.count;
    if (before == 0) state.center = convert<double>(x[0]);
    double distances[kRun<T>], sum = 0;
    for (int k = 0; k < kRun<T>; ++k) {
      distances[k] = k < count ? convert<double>(x[k]) - state.center : 0;
      sum += distances[k];
    }
    state.count += count;
    const double move = sum / state.count;
    state.center += move;
    double squares = before * move * move;
    for (int k = 0; k < kRun<T>; ++k)
      if (k < count) squares += (distances[k] - move) * (distances[k] - move);
    state.sum += squares;
  }
  __device__ void add(State& state, Accumulate<T> x) const {
    const auto value = static_cast<double>(x);
    if (kind == Kind::norm1) {
      state.sum += std::abs(value);
    } else if (kind == Kind::product) {
      state.sum *= value;
    } else if (kind == Kind::norm2) {
      state.sum += value * value;
    } else if (value > state.center) {
      state.sum = state.sum * std::exp(state.center - value) + 1;
      state.center = value;
    } else {  // equal infinities have no difference
      state.sum +=
          value == state.center
              ? 1.0
              : static_cast<double>(std::exp(static_cast<Accumulate<T>>(value - state.center)));
    }
  }
};

}  // namespace

Status statistic(const KernelContext& context) {
  const Buffer& out = context.outputs[0];
  const auto& how = context.attribute<StatisticAttributes>();
  if (out.elements() == 0) return {};
  return for_floating(out.spec.dtype, [&]<class T>(T) {
    return fold_axes<T>(context, how.axes,
                        Statistic<T>{out.as<T>(), how.kind, static_cast<double>(how.correction)});
  });
}

}  // namespace ebb::cuda
