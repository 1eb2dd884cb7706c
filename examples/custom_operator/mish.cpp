// Compiled by nvcc where there is a CUDA toolkit, which adds kernels for GPUs.
#include "ebb/examples/custom_operator/mish.h"

#include "ebb/custom_operator.h"

namespace {

// The derivative of mish. It has no derivative itself, so mish has gradients of the first order
// only.
struct MishSlope {
  static constexpr const char* name = "mish_slope";
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    using std::exp, std::log1p, std::tanh;
    const X t = tanh(log1p(exp(x)));
    return t + x * (1 - t * t) / (1 + exp(-x));
  }
};

struct Mish {
  static constexpr const char* name = "mish";
  using Derivatives = ebb::Derivatives<MishSlope>;
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    using std::exp, std::log1p, std::tanh;
    return x * tanh(log1p(exp(x)));
  }
};

}  // namespace

ebb::Tensor mish(const ebb::Operand& x) { return ebb::custom_operator(Mish{}, x); }
