#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb {

// The activation after a product. The kernels of dense compute the first ones, forward and
// backward. From gelu on they are operators of their own behind it (core/ops/activations.h), with
// default parameters.
enum class Activation : std::int32_t {
  none,
  relu,
  tanh,
  sigmoid,
  gelu,
  gelu_tanh,  // gelu(x, {.approximate = true})
  silu,
  leaky_relu,
  elu,
  softplus
};

struct MatmulAttributes {
  std::uint8_t transpose_a = 0;
  std::uint8_t transpose_b = 0;
  std::uint8_t reserved[6] = {};
};

struct DenseAttributes {
  Activation activation = Activation::none;  // at most sigmoid, here and below
  std::int32_t bias = 1;                     // whether there is an input 2, the bias
};

struct DenseSizes {
  std::int64_t rows = 1, in, out;

  DenseSizes(const Spec& x, const Spec& w) noexcept : in(w.shape.dim(0)), out(w.shape.dim(1)) {
    for (int axis = 0; axis + 1 < x.shape.rank(); ++axis) rows *= x.shape.dim(axis);
  }
};

struct ActivationAttributes {
  Activation activation = Activation::none;
};

namespace cpu {
// out[..., m, n] = op(a) op(b), matrices whose leading axes broadcast to out's; floating.
Status matmul(const KernelContext&);
// Inputs x [..., in], w [in, out], b [out] (optional); output y [..., out] = activation(x w + b).
Status dense(const KernelContext&);
// Inputs x, w and da, the gradient before the activation; x has data where dw is wanted, w where dx
// is. Outputs dx, dw, db, except unwanted ones. dx may be x.
Status dense_backward(const KernelContext&);
// Inputs dy, y = activation(a), not Activation::none; output da = dy activation'(a), which may be
// dy or y.
Status activation_backward(const KernelContext&);
MemoryFunction dense_backward_memory;
}  // namespace cpu

}  // namespace ebb
