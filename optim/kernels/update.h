// Shared parts of the kernels of all update rules, on every device.
//
// A rule is a functor over one element: a struct with
//   kSlots                         arrays beside the parameter
//   Attributes                     numbers of the operator, `double clip_value` among them
//   Constants<T>                   numbers that are equal for all elements; trivial
//   constants<T>(attributes, step, rate)    computed in double, each rounded once
//   update(constants, T (&x)[1 + kSlots], T g)    new values of the parameter x[0] and its slots
// T is float or double, the wider of the stored dtypes; f16 and bf16 are computed in float.
// update() has no branches on elements, so that it becomes vector code.
//
// Its operator has the inputs p*, slots*.., g, step (i64 scalar, already counting this one), rate
// (f64 scalar), (ready (bool scalar), count (i64 scalar))?, (scale (f64, only the first element
// counts))?. A star marks what is written; there are no outputs. Unless ready, nothing happens. g
// becomes g / count * scale, then is limited to [-clip_value, clip_value] where clip_value is above
// 0. One pass over all arrays. Takes any mixture of f32 and f64, and of f16, bf16 and f32.
#pragma once
#include <cstdint>
#include <limits>

#include "ebb/core/base/host_device.h"
#include "ebb/core/kernels/kernel.h"

namespace ebb::optim {

// The inputs that are no arrays, in device memory.
struct UpdateScalars {
  const std::int64_t* step;
  const double* rate;
  const bool* ready = nullptr;  // null, as is count: not gated
  const std::int64_t* count = nullptr;
  const double* scale = nullptr;  // or null

  // `arrays` counts p, slots and g. The number of inputs says which of the optional ones there are.
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

// Divides, scales and clips a gradient before its rule sees it.
template <class T>
struct GradientAsGiven {
  T divisor, scale, limit;

  EBB_HOST_DEVICE bool is_unchanged() const {
    return divisor == 1 && scale == 1 && limit == std::numeric_limits<T>::infinity();
  }
  // NaN stays NaN.
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
