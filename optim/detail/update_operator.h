// What the operators of update rules have in common.
#pragma once
#include "ebb/core/tensor/apply.h"

namespace ebb::optim {

// When an update happens: unless `ready` (bool scalar) it does nothing; it divides the gradient by
// `count` (i64 scalar). An operator has the two as further inputs at the end, where its attributes
// say `gated`.
struct Gate {
  Tensor ready = {};  // neither: not gated
  Tensor count = {};

  bool defined() const noexcept { return ready.defined(); }
};

// Applies an update to `inputs` and those of the gate. Returns the first in its new version.
Tensor apply_update(const OpDef& op, Inputs inputs, const Attributes& attributes, const Gate& gate);
template <std::size_t N>
Tensor apply_update(const OpDef& op, const Input (&inputs)[N], const Attributes& attributes,
                    const Gate& gate) {
  return apply_update(op, Inputs(inputs, N), attributes, gate);
}

// A part of shape rules: the first `count` inputs are parameter, state and gradient, of one shape;
// the parameter, the first, is output 0. Each is f32 or f64; beside a parameter of f16 or bf16 the
// state is f32, and the gradient f32 or of the parameter's dtype.
void infer_update(Inference& inference, std::size_t count);
// Another: the last two inputs are a gate's, where the update is gated.
void require_gate(const Inference& inference, bool gated);

}  // namespace ebb::optim
