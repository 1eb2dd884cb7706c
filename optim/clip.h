#pragma once
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/tensor.h"

namespace ebb::optim {

// What an optimizer does to gradients before its rule sees them: one of three, or nothing.
//
//   optim::Adam({.clip = {.global_norm = 1}})
//
// An update with `value` takes nothing more; the norms take 4 KiB while a step is made, and no copy
// of a gradient: the scale is a factor in the update's own kernel (with `norm`, on a GPU, one
// launch for each parameter, not one for all). (A rule of one's own, which is no kernel, is given
// scaled copies.) In an Accumulator the mean gradient is clipped, once per update. Norms are
// computed in double. Where one is NaN, so is every gradient that it scales; where it is infinite,
// finite ones become 0 and infinite ones NaN.
struct Clip {
  // Which limit is meant is said by its name: {.clip = 1} does not compile.
  struct ByName {
    explicit constexpr ByName() noexcept {}
  };
  [[no_unique_address]] ByName by_name = ByName();
  double value = 0;        // each element between -value and value
  double norm = 0;         // each gradient by itself to a Euclidean norm of at most this
  double global_norm = 0;  // all gradients of a step together to one of at most this

  bool by_norm() const noexcept { return norm > 0 || global_norm > 0; }
};

// The same for gradients that are then given to Optimizer::apply(), or looked at. They return new
// tensors, of the gradients' shapes and dtypes; what is not defined() stays so. Of public
// operators, with all gradients of their own; sums of squares are in the gradients' dtype, f32 for
// 16 bits. Throw Error for a limit that is not finite and above 0, and where no gradient is
// defined.
Tensors clip_by_value(const Tensors& gradients, double limit, CallSite site = CallSite::here());
// g limit / max(norm(g), limit).
Tensors clip_by_norm(const Tensors& gradients, double limit, CallSite site = CallSite::here());

struct ClippedGradients {
  Tensors gradients;
  Tensor norm;  // f64[], before they were clipped
};
// g limit / max(norm, limit), with the norm of all of them together.
ClippedGradients clip_by_global_norm(const Tensors& gradients, double limit,
                                     CallSite site = CallSite::here());
// That norm alone, f64[].
Tensor global_norm(const Tensors& gradients, CallSite site = CallSite::here());

// What optimizers compute their scale with, from gradients (optim/kernels/clip.h).
extern const OpDef clip_scale_op;

}  // namespace ebb::optim
