// What the kernels of all update rules have in common, on every device.
//
// A rule is a functor over one element: a struct with
//   kSlots                         arrays beside the parameter
//   Attributes                     numbers of the operator, `double clip_value` among them
//   Constants<T>                   what is the same for all elements; trivial
//   constants<T>(attributes, step, rate)    computed in double, each rounded once
//   update(constants, T (&x)[1 + kSlots], T g)    new values of the parameter x[0] and its slots
// T is float or double, the wider of what is stored; f16 and bf16 are computed with in float. There
// are no branches on elements in it, so that it becomes vector code.
//
// Its operator has the inputs p*, slots*.., g, step (i64 scalar, already counting this one), rate
// (f64 scalar), (ready (bool scalar), count (i64 scalar))?, (scale (f64, of which the first element
// counts))?; what has a star is written, and there are no outputs. Unless ready, nothing happens;
// g becomes g / count * scale, then what is outside clip_value, where that is above 0, becomes it.
// One pass over all arrays. Any mixture of f32 and f64 is taken, and of f16, bf16 and f32.
#pragma once
#include <cstdint>
#include <limits>

#include "ebb/core/base/host_device.h"
#include "ebb/core/kernels/kernel.h"

namespace ebb::optim {

// The inputs that are no arrays, in the memory of the device.
struct UpdateScalars {
  const std::int64_t* step;
  const double* rate;
  const bool* ready = nullptr;  // neither: not gated
  const std::int64_t* count = nullptr;
  const double* scale = nullptr;  // or null

  // `arrays`: p, slots and g. How many inputs there are says which of the others are.
  UpdateScalars(const KernelContext& context, std::size_t arrays) noexcept
      : step(context.inputs[arrays].as<const std::int64_t>()),
        rate(context.inputs[arrays + 1].as<const double>()) {
    const std::size_t n = context.inputs.size(), more = n - arrays - 2;
    if (more >= 2) {
      ready = context.inputs[arrays + 2].as<const bool>();
      count = context.inputs[arrays + 3].as<const std::int64_t>();
    }
    if (more % 2 == 1) scale = context.inputs[n - 1].as<const double>();
  }
  EBB_HOST_DEVICE bool is_open() const { return ready == nullptr || *ready; }
};

// What becomes of a gradient before its rule sees it.
template <class T>
struct GradientAsGiven {
  T divisor, scale, limit;

  EBB_HOST_DEVICE bool is_unchanged() const {
    return divisor == 1 && scale == 1 && limit == std::numeric_limits<T>::infinity();
  }
  // NaN stays.
  EBB_HOST_DEVICE T operator()(T g) const {
    g = g / divisor * scale;
    return g < -limit ? -limit : g > limit ? limit : g;
  }
};
template <class T>
EBB_HOST_DEVICE inline GradientAsGiven<T> gradient_as_given(const UpdateScalars& scalars,
                                                            double clip_value) {
  return {static_cast<T>(scalars.count == nullptr ? 1 : *scalars.count),
          static_cast<T>(scalars.scale == nullptr ? 1 : *scalars.scale),
          clip_value > 0 ? static_cast<T>(clip_value) : std::numeric_limits<T>::infinity()};
}

}  // namespace ebb::optim

#define EBB_UPDATE(name, Rule)                   \
  namespace ebb::cpu {                           \
  Status name(const KernelContext&);             \
  }                                              \
  namespace ebb::cuda {                          \
  KernelFunction name;                           \
  Status name##_merged(std::span<const Launch>); \
  }
#include "ebb/optim/kernels/updates.inc"
#undef EBB_UPDATE
