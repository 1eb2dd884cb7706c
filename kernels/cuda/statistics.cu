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

  __device__ void add(State& state, T element, std::int64_t) const {
    const auto x = static_cast<Accumulate<T>>(element);
    if (kind == Kind::norm1) {
      state.sum += static_cast<double>(std::abs(x));
    } else if (kind == Kind::product) {
      state.sum *= static_cast<double>(x);
    } else if (kind == Kind::norm2) {
      state.sum += static_cast<double>(x) * static_cast<double>(x);
    } else if (kind == Kind::logsumexp) {
      const double value = static_cast<double>(x);
      if (value > state.center) {
        state.sum = state.sum * std::exp(state.center - value) + 1;
        state.center = value;
      } else {  // equal infinities have no difference
        state.sum +=
            value == state.center
                ? 1.0
                : static_cast<double>(std::exp(static_cast<Accumulate<T>>(value - state.center)));
      }
    } else {
      state.count += 1;
      const double difference = static_cast<double>(x) - state.center;
      state.center += difference / state.count;
      state.sum += difference * (static_cast<double>(x) - state.center);
    }
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
