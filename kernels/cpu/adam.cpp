#include "ebb/optim/kernels/adam.h"

#include <cmath>
#include <type_traits>

#include "ebb/kernels/cpu/dispatch.h"
#include "ebb/kernels/cpu/gate.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/update_types.h"

namespace ebb::cpu {
namespace {

template <class T>
struct AdamConstants {
  T beta1, beta2, one_minus_beta1, one_minus_beta2;
  T step_size, sqrt_correction, epsilon, decay, keep, divisor;
};

// One pass over parameter, moments and gradient, each of its own type; 28 bytes a parameter in f32.
// Restrict: the four arrays are four tensors.
template <bool kDivide, class T, class P, class M, class G>
void adam_run(const AdamConstants<T>& k, P* __restrict p, M* __restrict m, M* __restrict v,
              const G* __restrict gradient, std::int64_t count) noexcept {
  const AdamConstants<T> c = k;
  for (std::int64_t i = 0; i < count; ++i) {
    const T value = static_cast<T>(p[i]);
    T g = static_cast<T>(gradient[i]);
    if constexpr (kDivide) g /= c.divisor;
    g += c.decay * value;
    const T first = c.beta1 * static_cast<T>(m[i]) + c.one_minus_beta1 * g;
    const T second = c.beta2 * static_cast<T>(v[i]) + c.one_minus_beta2 * (g * g);
    m[i] = static_cast<M>(first);
    v[i] = static_cast<M>(second);
    p[i] = static_cast<P>(c.keep * value - c.step_size * first /
                                               (std::sqrt(second) / c.sqrt_correction + c.epsilon));
  }
}

}  // namespace

Status adam_update(const KernelContext& context) {
  const auto& a = context.attribute<optim::AdamAttributes>();
  const GateState gate(context, a.gated != 0);
  const Buffer &p = context.inputs[0], &m = context.inputs[1], &v = context.inputs[2],
               &g = context.inputs[3];
  if (m.spec.dtype != v.spec.dtype)
    return Status::refuse("has no kernel for moments of two dtypes");
  const auto step = static_cast<double>(*context.inputs[4].as<const std::int64_t>());
  const double rate = *context.inputs[5].as<const double>();
  const double correction1 = 1 - std::pow(a.beta1, step), correction2 = 1 - std::pow(a.beta2, step);
  const auto update = [&](auto parameter, auto moment, auto gradient_type) {
    if (!gate.open) return;
    using P = decltype(parameter);
    using M = decltype(moment);
    using G = decltype(gradient_type);
    using T = UpdateComputed<P, M, G>;
    const auto as = [](double x) { return static_cast<T>(x); };
    const bool decoupled = a.decoupled != 0;
    const AdamConstants<T> constants = {.beta1 = as(a.beta1),
                                        .beta2 = as(a.beta2),
                                        .one_minus_beta1 = as(1 - a.beta1),
                                        .one_minus_beta2 = as(1 - a.beta2),
                                        .step_size = as(rate / correction1),
                                        .sqrt_correction = as(std::sqrt(correction2)),
                                        .epsilon = as(a.epsilon),
                                        .decay = as(decoupled ? 0 : a.weight_decay),
                                        .keep = as(decoupled ? 1 - rate * a.weight_decay : 1),
                                        .divisor = as(gate.divisor)};
    P* const values = p.as<P>();
    M *const first = m.as<M>(), *const second = v.as<M>();
    const G* const gradient = g.as<const G>();
    const auto run = gate.divisor == 1 ? adam_run<false, T, Computed<P>, M, Computed<G>>
                                       : adam_run<true, T, Computed<P>, M, Computed<G>>;
    for_pieces(p.elements(), kPieceElements, [&](std::int64_t begin, std::int64_t end) {
      for_computed(gradient, values, begin, end,
                   [&](const auto* g, auto* p, std::int64_t i, std::int64_t count) {
                     run(constants, p, first + i, second + i, g, count);
                   });
    });
  };
  return for_update(p.spec.dtype, m.spec.dtype, g.spec.dtype, update);
}

}  // namespace ebb::cpu
