#include "ebb/optim/kernels/adam.h"

#include <cmath>
#include <cstdint>

#include "ebb/kernels/cuda/gate.h"
#include "ebb/kernels/cuda/merged.h"

namespace ebb::cuda {
namespace {

struct Adam {
  static constexpr int kArrays = 4, kWritten = 3;  // p, m, v; g

  optim::AdamAttributes attributes;
  const std::int64_t* step;
  const double* rate;
  Gate gate;

  template <class T>
  struct Constants {
    T beta1, beta2, one_minus_beta1, one_minus_beta2;
    T step_size, sqrt_correction, epsilon, decay, keep, divisor;
  };

  explicit Adam(const KernelContext& context) noexcept
      : attributes(context.attribute<optim::AdamAttributes>()),
        step(context.inputs[4].as<const std::int64_t>()),
        rate(context.inputs[5].as<const double>()),
        gate(context, attributes.gated != 0) {}

  __device__ bool is_open() const { return gate.is_open(); }

  template <class T>
  __device__ Constants<T> constants() const {
    const optim::AdamAttributes& a = attributes;
    const bool decoupled = a.decoupled != 0;
    const double n = static_cast<double>(*step), r = *rate;
    const auto as = [](double x) { return static_cast<T>(x); };
    return {.beta1 = as(a.beta1),
            .beta2 = as(a.beta2),
            .one_minus_beta1 = as(1 - a.beta1),
            .one_minus_beta2 = as(1 - a.beta2),
            .step_size = as(r / (1 - std::pow(a.beta1, n))),
            .sqrt_correction = as(std::sqrt(1 - std::pow(a.beta2, n))),
            .epsilon = as(a.epsilon),
            .decay = as(decoupled ? 0 : a.weight_decay),
            .keep = as(decoupled ? 1 - r * a.weight_decay : 1),
            .divisor = as(gate.divisor())};
  }

  template <class T>
  __device__ static void update(const Constants<T>& c, T (&x)[kArrays]) {
    T g = x[3];
    if (c.divisor != 1) g /= c.divisor;
    g += c.decay * x[0];
    x[1] = c.beta1 * x[1] + c.one_minus_beta1 * g;
    x[2] = c.beta2 * x[2] + c.one_minus_beta2 * (g * g);
    x[0] = c.keep * x[0] - c.step_size * x[1] / (std::sqrt(x[2]) / c.sqrt_correction + c.epsilon);
  }
};

}  // namespace

Status adam_update_merged(std::span<const Launch> launches) {
  const auto arrays = [](const KernelContext&) { return std::size_t{Adam::kArrays}; };
  return run_merged(launches, arrays, [](const MergedGroup& group) {
    const auto dtype = [&](std::size_t k) { return group.front().inputs[k].spec.dtype; };
    if (dtype(1) != dtype(2)) return Status::refuse("has no kernel for moments of two dtypes");
    return for_update(dtype(0), dtype(1), dtype(3), [&]<class P, class M, class G>(P, M, G) {
      return group.run<P, M, M, G>(Adam(group.front()));
    });
  });
}

Status adam_update(const KernelContext& context) { return run_one(adam_update_merged, context); }

}  // namespace ebb::cuda
