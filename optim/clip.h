#pragma once
#include "ebb/core/tensor/tensor.h"

namespace ebb::optim {

// Clips gradients before the rule sees them: by one of three limits, or not at all.
//
//   optim::Adam({.clip = {.global_norm = 1}})
//
// `value` takes no memory. The norms take 4 KiB during a step and no copy of a gradient, since the
// update's own kernel multiplies by the scale. With `norm`, a GPU launches one update per parameter
// instead of one for all. A rule of your own, which is no kernel, is given scaled copies. An
// Accumulator clips the mean gradient, once per update. Norms are computed in double. A NaN norm
// makes every gradient that it scales NaN; an infinite norm makes finite gradients 0 and infinite
// ones NaN.
//
// The norm that `global_norm` has found in the last update, before clipping, is a slot beside the
// count of steps, params["adam/gradient_norm"], f64[]. In a graph it is fetched beside the step.
struct Clip {
  // Makes the caller name the limit: {.clip = 1} does not compile.
  struct ByName {
    explicit constexpr ByName() noexcept {}
  };
  [[no_unique_address]] ByName by_name = ByName();
  double value = 0;        // each element between -value and value
  double norm = 0;         // each gradient by itself to a Euclidean norm of at most this
  double global_norm = 0;  // all gradients of a step together to a norm of at most this

  bool by_norm() const noexcept { return norm > 0 || global_norm > 0; }
};

// Clipping for gradients that are then given to Optimizer::apply(), or looked at. Returns new
// tensors of the gradients' shapes and dtypes; undefined ones stay undefined. Made of public
// operators, so they have gradients of every order. Sums of squares are in the gradients' dtype,
// f32 for 16 bits. Throw Error for a limit that is not finite and above 0, and where no gradient is
// defined.
Tensors clip_by_value(const Tensors& gradients, double limit, CallSite site = CallSite::here());
// g limit / max(norm(g), limit).
Tensors clip_by_norm(const Tensors& gradients, double limit, CallSite site = CallSite::here());

struct ClippedGradients {
  Tensors gradients;
  Tensor norm;  // f64[], before clipping
};
// g limit / max(norm, limit), with the norm of all gradients together.
ClippedGradients clip_by_global_norm(const Tensors& gradients, double limit,
                                     CallSite site = CallSite::here());
// The norm of all gradients together, f64[].
Tensor global_norm(const Tensors& gradients, CallSite site = CallSite::here());

}  // namespace ebb::optim
