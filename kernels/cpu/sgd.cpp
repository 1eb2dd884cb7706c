#include "ebb/optim/kernels/sgd.h"

#include <type_traits>

#include "ebb/kernels/cpu/dispatch.h"
#include "ebb/kernels/cpu/gate.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/update_types.h"

namespace ebb::cpu {
namespace {

template <class T>
struct SgdConstants {
  T momentum, decay, rate, divisor;
  bool nesterov;
};

// `velocity` may be null: no momentum.
template <class T, class P, class V, class G>
void sgd_run(const SgdConstants<T>& k, P* __restrict p, V* __restrict velocity,
             const G* __restrict gradient, std::int64_t count) noexcept {
  const SgdConstants<T> c = k;
  if (velocity == nullptr) {
    for (std::int64_t i = 0; i < count; ++i) {
      const T value = static_cast<T>(p[i]);
      p[i] = static_cast<P>(value -
                            c.rate * (static_cast<T>(gradient[i]) / c.divisor + c.decay * value));
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const T value = static_cast<T>(p[i]);
    const T g = static_cast<T>(gradient[i]) / c.divisor + c.decay * value;
    const T v = c.momentum * static_cast<T>(velocity[i]) + g;
    velocity[i] = static_cast<V>(v);
    p[i] = static_cast<P>(value - c.rate * (c.nesterov ? g + c.momentum * v : v));
  }
}

}  // namespace

Status sgd_update(const KernelContext& context) {
  const auto& attributes = context.attribute<optim::SgdAttributes>();
  const GateState gate(context, attributes.gated != 0);
  const bool has_velocity = attributes.momentum > 0;
  const Buffer& p = context.inputs[0];
  const Buffer &g = context.inputs[has_velocity ? 2 : 1],
               &rate = context.inputs[has_velocity ? 3 : 2];
  const Buffer& state = has_velocity ? context.inputs[1] : p;
  const auto update = [&](auto parameter, auto moment, auto gradient_type) {
    if (!gate.open) return;
    using P = decltype(parameter);
    using V = decltype(moment);
    using G = decltype(gradient_type);
    using T = UpdateComputed<P, V, G>;
    const SgdConstants<T> constants = {static_cast<T>(attributes.momentum),
                                       static_cast<T>(attributes.weight_decay),
                                       static_cast<T>(*rate.as<const double>()),
                                       static_cast<T>(gate.divisor), attributes.nesterov != 0};
    P* const values = p.as<P>();
    V* const velocity = has_velocity ? state.as<V>() : nullptr;
    const G* const gradient = g.as<const G>();
    for_pieces(p.elements(), kPieceElements, [&](std::int64_t begin, std::int64_t end) {
      for_computed(gradient, values, begin, end,
                   [&](const auto* g, auto* p, std::int64_t i, std::int64_t count) {
                     sgd_run(constants, p, velocity == nullptr ? nullptr : velocity + i, g, count);
                   });
    });
  };
  const bool keeps_none = !has_velocity && is_half(p.spec.dtype);
  return for_update(p.spec.dtype, keeps_none ? DType::f32 : state.spec.dtype, g.spec.dtype, update);
}

}  // namespace ebb::cpu
