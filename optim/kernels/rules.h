// The arithmetic of all update rules, on every device, and what their kernels share.
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
#include <cmath>
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

struct SgdAttributes {
  double momentum = 0;      // used only with a velocity
  double weight_decay = 0;  // added to the gradient
  double clip_value = 0;
  std::int64_t nesterov = 0;
};

// PyTorch's SGD; a velocity starts at 0:
//   g += wd p; v = momentum v + g; p -= rate (nesterov ? g + momentum v : v)
template <bool kHasVelocity>
struct SgdUpdate {
  static constexpr int kSlots = kHasVelocity ? 1 : 0;
  using Attributes = SgdAttributes;

  template <class T>
  struct Constants {
    T momentum, decay, rate;
    bool nesterov;
  };
  template <class T>
  EBB_HOST_DEVICE static Constants<T> constants(const Attributes& a, double, double rate) {
    return {static_cast<T>(a.momentum), static_cast<T>(a.weight_decay), static_cast<T>(rate),
            a.nesterov != 0};
  }
  template <class T>
  EBB_HOST_DEVICE static void update(const Constants<T>& c, T (&x)[1 + kSlots], T g) {
    g = g + c.decay * x[0];
    if constexpr (kHasVelocity) {
      x[1] = c.momentum * x[1] + g;
      x[0] = x[0] - c.rate * (c.nesterov ? g + c.momentum * x[1] : x[1]);
    } else {
      x[0] = x[0] - c.rate * g;
    }
  }
};

struct AdamAttributes {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  double clip_value = 0;
  std::int64_t decoupled = 0;  // 1: AdamW, p -= rate wd p; 0: wd p is added to the gradient
};

// Adam of Kingma & Ba with bias correction as PyTorch computes it (denominator
// sqrt(v) / sqrt(1 - beta2^t) + epsilon). Slots m and v.
struct AdamUpdate {
  static constexpr int kSlots = 2;
  using Attributes = AdamAttributes;

  template <class T>
  struct Constants {
    T beta1, beta2, one_minus_beta1, one_minus_beta2;
    T step_size, sqrt_correction, epsilon, decay, keep;
  };
  template <class T>
  EBB_HOST_DEVICE static Constants<T> constants(const Attributes& a, double step, double rate) {
    const bool decoupled = a.decoupled != 0;
    return {.beta1 = static_cast<T>(a.beta1),
            .beta2 = static_cast<T>(a.beta2),
            .one_minus_beta1 = static_cast<T>(1 - a.beta1),
            .one_minus_beta2 = static_cast<T>(1 - a.beta2),
            .step_size = static_cast<T>(rate / (1 - std::pow(a.beta1, step))),
            .sqrt_correction = static_cast<T>(std::sqrt(1 - std::pow(a.beta2, step))),
            .epsilon = static_cast<T>(a.epsilon),
            .decay = static_cast<T>(decoupled ? 0 : a.weight_decay),
            .keep = static_cast<T>(decoupled ? 1 - rate * a.weight_decay : 1)};
  }
  template <class T>
  EBB_HOST_DEVICE static void update(const Constants<T>& c, T (&x)[1 + kSlots], T g) {
    g += c.decay * x[0];
    x[1] = c.beta1 * x[1] + c.one_minus_beta1 * g;
    x[2] = c.beta2 * x[2] + c.one_minus_beta2 * (g * g);
    x[0] = c.keep * x[0] - c.step_size * x[1] / (std::sqrt(x[2]) / c.sqrt_correction + c.epsilon);
  }
};

struct RmspropAttributes {
  double decay = 0.99, epsilon = 1e-8, momentum = 0, weight_decay = 0;
  double clip_value = 0;
};

// Slots that a rule keeps beside the mean of squares.
enum RmspropForm : int { kCentered = 1, kMomentum = 2 };

// PyTorch's RMSprop. Slots v, (a if kCentered), (b if kMomentum):
//   g += wd p; v = decay v + (1 - decay) g^2; a = decay a + (1 - decay) g
//   u = g / (sqrt(v - a^2) + epsilon); b = momentum b + u; p -= rate b
// Without kCentered a is 0, without kMomentum b is u. The variance v - a^2 is kept at or above 0.
template <int kForm>
struct RmspropUpdate {
  static constexpr bool kHasMean = (kForm & kCentered) != 0, kHasBuffer = (kForm & kMomentum) != 0;
  static constexpr int kSlots = 1 + (kHasMean ? 1 : 0) + (kHasBuffer ? 1 : 0);
  using Attributes = RmspropAttributes;

  template <class T>
  struct Constants {
    T decay, one_minus_decay, epsilon, momentum, weight_decay, rate;
  };
  template <class T>
  EBB_HOST_DEVICE static Constants<T> constants(const Attributes& a, double, double rate) {
    return {static_cast<T>(a.decay),    static_cast<T>(1 - a.decay),    static_cast<T>(a.epsilon),
            static_cast<T>(a.momentum), static_cast<T>(a.weight_decay), static_cast<T>(rate)};
  }
  template <class T>
  EBB_HOST_DEVICE static void update(const Constants<T>& c, T (&x)[1 + kSlots], T g) {
    g += c.weight_decay * x[0];
    x[1] = c.decay * x[1] + c.one_minus_decay * (g * g);
    T variance = x[1];
    if constexpr (kHasMean) {
      x[2] = c.decay * x[2] + c.one_minus_decay * g;
      variance -= x[2] * x[2];
      variance = variance < 0 ? T{} : variance;
    }
    T u = g / (std::sqrt(variance) + c.epsilon);
    if constexpr (kHasBuffer) u = x[kSlots] = c.momentum * x[kSlots] + u;
    x[0] -= c.rate * u;
  }
};

struct AdagradAttributes {
  double rate_decay = 0, initial_sum = 0, epsilon = 1e-10, weight_decay = 0;
  double clip_value = 0;
};

// PyTorch's Adagrad, with t the step. Slot s, to which `initial_sum` is added where it is read:
//   g += wd p; s += g^2; p -= rate / (1 + (t - 1) rate_decay) g / (sqrt(initial_sum + s) + epsilon)
struct AdagradUpdate {
  static constexpr int kSlots = 1;
  using Attributes = AdagradAttributes;

  template <class T>
  struct Constants {
    T rate, initial_sum, epsilon, weight_decay;
  };
  template <class T>
  EBB_HOST_DEVICE static Constants<T> constants(const Attributes& a, double step, double rate) {
    return {static_cast<T>(rate / (1 + (step - 1) * a.rate_decay)), static_cast<T>(a.initial_sum),
            static_cast<T>(a.epsilon), static_cast<T>(a.weight_decay)};
  }
  template <class T>
  EBB_HOST_DEVICE static void update(const Constants<T>& c, T (&x)[1 + kSlots], T g) {
    g += c.weight_decay * x[0];
    x[1] += g * g;
    x[0] -= c.rate * g / (std::sqrt(c.initial_sum + x[1]) + c.epsilon);
  }
};

struct LionAttributes {
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  double clip_value = 0;
};

// Lion of Chen et al. Slot m:
//   p -= rate (sign(beta1 m + (1 - beta1) g) + wd p); m = beta2 m + (1 - beta2) g
// with the old m and p on the right. sign(0) is 0, sign(NaN) NaN.
struct LionUpdate {
  static constexpr int kSlots = 1;
  using Attributes = LionAttributes;

  template <class T>
  struct Constants {
    T beta1, one_minus_beta1, beta2, one_minus_beta2, rate, keep;
  };
  template <class T>
  EBB_HOST_DEVICE static Constants<T> constants(const Attributes& a, double, double rate) {
    return {static_cast<T>(a.beta1), static_cast<T>(1 - a.beta1),
            static_cast<T>(a.beta2), static_cast<T>(1 - a.beta2),
            static_cast<T>(rate),    static_cast<T>(1 - rate * a.weight_decay)};
  }
  template <class T>
  EBB_HOST_DEVICE static void update(const Constants<T>& c, T (&x)[1 + kSlots], T g) {
    const T u = c.beta1 * x[1] + c.one_minus_beta1 * g;
    const T step = u > 0 ? c.rate : u < 0 ? -c.rate : u;  // u is 0 or NaN in the last case
    x[0] = c.keep * x[0] - step;
    x[1] = c.beta2 * x[1] + c.one_minus_beta2 * g;
  }
};

struct AverageAttributes {
  std::int64_t bias_corrected = 1;
  double clip_value = 0;  // every update rule has one
};

// Takes a value x into its average a. As an update, the average is the parameter, the value the
// gradient and the decay d the rate. The t-th time:
//   a += w (x - a), w = (1 - d) / (1 - d^t) with bias correction, else 1 - d; a = x the first time
struct AverageUpdate {
  static constexpr int kSlots = 0;
  using Attributes = AverageAttributes;

  template <class T>
  struct Constants {
    T weight;
  };
  template <class T>
  EBB_HOST_DEVICE static Constants<T> constants(const Attributes& a, double step, double decay) {
    const double corrected = (1 - decay) / (1 - std::pow(decay, step));
    return {static_cast<T>(step <= 1 ? 1 : a.bias_corrected != 0 ? corrected : 1 - decay)};
  }
  template <class T>
  EBB_HOST_DEVICE static void update(const Constants<T>& c, T (&x)[1 + kSlots], T value) {
    x[0] = c.weight == 1 ? value : x[0] + c.weight * (value - x[0]);
  }
};

}  // namespace ebb::optim

#define EBB_UPDATE(name, Rule)                   \
  namespace ebb::cpu {                           \
  Status name(const KernelContext&);             \
  }                                              \
  namespace ebb::cuda {                          \
  KernelFunction name;                           \
  Status name##_merged(std::span<const Launch>); \
  }
#include "ebb/optim/kernels/rules.inc"
