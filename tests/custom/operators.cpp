// A user's source file. Compiled by nvcc, or against the emulated device, it has kernels for CUDA.
#include "ebb/tests/custom/operators.h"

#include "ebb/custom_operator.h"
#include "ebb/tests/device/test_device.h"

namespace ebb::tests {
namespace {

// With u = tanh(softplus(x)) and s = sigmoid(x): u' = (1 - u^2) s.
template <class X>
struct MishParts {
  X u, s;
  EBB_HOST_DEVICE explicit MishParts(X x) {
    using std::exp, std::log1p, std::tanh;
    u = tanh(log1p(exp(x)));
    s = 1 / (1 + exp(-x));
  }
};

struct MishCurve {
  static constexpr const char* name = "mish_curve";
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    const MishParts<X> m(x);
    const X slope = (1 - m.u * m.u) * m.s;
    return 2 * slope + x * (slope * (1 - m.s) - 2 * m.u * slope * m.s);
  }
};
struct MishSlope {
  static constexpr const char* name = "mish_slope";
  using Derivatives = ebb::Derivatives<MishCurve>;
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    const MishParts<X> m(x);
    return m.u + x * (1 - m.u * m.u) * m.s;
  }
};
struct Mish {
  static constexpr const char* name = "mish";
  using Derivatives = ebb::Derivatives<MishSlope>;
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return x * MishParts<X>(x).u;
  }
};

struct Swish {
  static constexpr const char* name = "swish";
  struct Slope;
  using Derivatives = ebb::Derivatives<Slope>;
  double beta = 1;
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    using std::exp;
    return x / (1 + exp(-static_cast<X>(beta) * x));
  }
};
struct Swish::Slope {
  static constexpr const char* name = "swish_slope";
  Swish swish;
  // A rule of public operators, under an operator with functors: s' = beta s (1 - s).
  static Tensors gradient(const GradientContext& g) {
    const double beta = g.attribute<Slope>().swish.beta;
    const Tensor x = g.x(0) * beta, s = sigmoid(x);
    return {g.take_dy() * (beta * s * (1 - s) * (2 + x * (1 - 2 * s)))};
  }
  static constexpr Keeps keeps = input(0);
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    using std::exp;
    const X b = static_cast<X>(swish.beta), s = 1 / (1 + exp(-b * x));
    return s * (1 + b * x * (1 - s));
  }
};

struct Cube {
  static constexpr const char* name = "cube";
  static Tensors gradient(const GradientContext& g) {
    return {g.take_dy() * (3 * square(g.take_x(0)))};
  }
  static constexpr Keeps keeps = input(0);
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return x * x * x;
  }
};

struct SechSquared {
  static constexpr const char* name = "sech_squared";
  template <class X>
  EBB_HOST_DEVICE X operator()(X a, X b) const {
    using std::tanh;
    const X t = tanh(a - b);
    return 1 - t * t;
  }
};
struct MinusSechSquared : SechSquared {
  template <class X>
  EBB_HOST_DEVICE X operator()(X a, X b) const {
    return -SechSquared()(a, b);
  }
};
struct TanhDifference {
  static constexpr const char* name = "tanh_difference";
  using Derivatives = ebb::Derivatives<SechSquared, MinusSechSquared>;
  template <class X>
  EBB_HOST_DEVICE X operator()(X a, X b) const {
    using std::tanh;
    return tanh(a - b);
  }
};
struct MinusTanhDifference {
  static constexpr const char* name = "tanh_difference";
  using Derivatives = ebb::Derivatives<MinusSechSquared, SechSquared>;
  template <class X>
  EBB_HOST_DEVICE X operator()(X a, X b) const {
    return -TanhDifference()(a, b);
  }
};
struct LogCosh {
  static constexpr const char* name = "log_cosh";
  using Derivatives = ebb::Derivatives<TanhDifference, MinusTanhDifference>;
  template <class X>
  EBB_HOST_DEVICE X operator()(X a, X b) const {
    using std::abs, std::exp, std::log1p;
    const X d = abs(a - b);
    return d + log1p(exp(-2 * d)) - X(0.69314718055994530942);
  }
};

struct Blend {
  static constexpr const char* name = "blend";
  // w a + (1 - w) b
  static Tensors gradient(const GradientContext& g) {
    const Tensor w = g.x(0);
    return {sum_like(g.dy() * (g.x(1) - g.x(2)), w), sum_like(g.dy() * w, g.x(1)),
            sum_like(g.dy() * (1 - w), g.x(2))};
  }
  static constexpr Keeps keeps = {kAll};
  template <class X>
  EBB_HOST_DEVICE X operator()(X w, X a, X b) const {
    return w * a + (1 - w) * b;
  }
};

struct Heaviside {
  static constexpr const char* name = "heaviside";
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return x < 0 ? X(0) : X(1);
  }
};

Status double_on_cpu(const KernelContext& c) {
  for (std::int64_t i = 0; i < c.outputs[0].elements(); ++i)
    c.outputs[0].as<float>()[i] = 2 * c.inputs[0].as<const float>()[i];
  return {};
}

#if EBB_CUDA_KERNELS
#include "ebb_docs/own_5.inc"
#endif

constinit const OpDef doubled_op {
  .name = "doubled",
  .infer =
      [](Inference& i) {
        i.require(i.inputs[0].dtype == DType::f32, "takes f32");
        i.output(DType::f32, i.inputs[0].shape);
      },
  .gradient = [](const GradientContext& g) -> Tensors { return {doubled(g.take_dy())}; },
  .cpu = {double_on_cpu},
#if EBB_CUDA_KERNELS
  .cuda = {double_on_cuda},
#endif
};

}  // namespace

bool has_kernels_here() {
#if defined(__CUDACC__)
  constexpr bool kForEmulated = false;
#else
  constexpr bool kForEmulated = true;
#endif
  return !on_cuda() || kForEmulated == on_emulated_cuda();
}

Tensor mish(const Operand& x) { return custom_operator(Mish{}, x); }
Tensor swish(const Operand& x, double beta) { return custom_operator(Swish{beta}, x); }
Tensor cube(const Operand& x) { return custom_operator(Cube{}, x); }
Tensor log_cosh(const Operand& prediction, const Operand& target) {
  return custom_operator(LogCosh{}, prediction, target);
}
Tensor blend(const Operand& weight, const Operand& a, const Operand& b) {
  return custom_operator(Blend{}, weight, a, b);
}
Tensor heaviside(const Operand& x) { return custom_operator(Heaviside{}, x); }
Tensor doubled(const Operand& x) { return apply_one(doubled_op, {x}, {}, x.site()); }

}  // namespace ebb::tests
