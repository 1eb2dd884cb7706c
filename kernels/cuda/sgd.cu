#include "ebb/optim/kernels/sgd.h"

#include "ebb/kernels/cuda/gate.h"
#include "ebb/kernels/cuda/merged.h"

namespace ebb::cuda {
namespace {

template <bool kHasVelocity>
struct Sgd {
  static constexpr int kArrays = kHasVelocity ? 3 : 2, kWritten = kArrays - 1;  // p, v; g

  optim::SgdAttributes attributes;
  const double* rate;
  Gate gate;

  template <class T>
  struct Constants {
    T momentum, decay, rate, divisor;
    bool nesterov;
  };

  explicit Sgd(const KernelContext& context) noexcept
      : attributes(context.attribute<optim::SgdAttributes>()),
        rate(context.inputs[kArrays].as<const double>()),
        gate(context, attributes.gated != 0) {}

  __device__ bool is_open() const { return gate.is_open(); }

  template <class T>
  __device__ Constants<T> constants() const {
    return {static_cast<T>(attributes.momentum), static_cast<T>(attributes.weight_decay),
            static_cast<T>(*rate), static_cast<T>(gate.divisor()), attributes.nesterov != 0};
  }

  template <class T>
  __device__ static void update(const Constants<T>& c, T (&x)[kArrays]) {
    const T g = x[kArrays - 1] / c.divisor + c.decay * x[0];
    if constexpr (kHasVelocity) {
      x[1] = c.momentum * x[1] + g;
      x[0] -= c.rate * (c.nesterov ? g + c.momentum * x[1] : x[1]);
    } else {
      x[0] -= c.rate * g;
    }
  }
};

bool has_velocity(const KernelContext& context) noexcept {
  return context.attribute<optim::SgdAttributes>().momentum > 0;
}

}  // namespace

Status sgd_update_merged(std::span<const Launch> launches) {
  const auto arrays = [](const KernelContext& context) {
    return std::size_t{has_velocity(context) ? 3u : 2u};
  };
  return run_merged(launches, arrays, [](const MergedGroup& group) {
    const auto dtype = [&](std::size_t k) { return group.front().inputs[k].spec.dtype; };
    if (has_velocity(group.front()))
      return for_update(dtype(0), dtype(1), dtype(2), [&]<class P, class V, class G>(P, V, G) {
        return group.run<P, V, G>(Sgd<true>(group.front()));
      });
    return for_update(dtype(0), DType::f32, dtype(1), [&]<class P, class V, class G>(P, V, G) {
      return group.run<P, G>(Sgd<false>(group.front()));
    });
  });
}

Status sgd_update(const KernelContext& context) { return run_one(sgd_update_merged, context); }

}  // namespace ebb::cuda
