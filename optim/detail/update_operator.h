// Shared parts of the operators of update rules.
#pragma once
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/op_def.h"

namespace ebb::optim {

// A condition on an update: unless `ready` (bool scalar) it does nothing, else it divides the
// gradient by `count` (i64 scalar). A gated operator has the two as further inputs.
struct Gate {
  Tensor ready = {};  // undefined, as is count: not gated
  Tensor count = {};

  bool defined() const noexcept { return ready.defined(); }
};

// Applies an update to `inputs`, followed by the gate's two tensors and the scale, where defined.
// Returns the first input in its new version.
Tensor apply_update(const OpDef& op, Inputs inputs, const Attributes& attributes, const Gate& gate,
                    const Tensor& scale);

// The shape rule of an update (optim/kernels/update.h). `arrays` counts parameter, state and
// gradient, which have one shape; the parameter comes first and is output 0. Each is f32 or f64;
// beside a parameter of f16 or bf16 the state is f32, and the gradient f32 or of the parameter's
// dtype.
void infer_update(Inference& inference, std::size_t arrays);

// The operator of a rule.
template <class Update>
constexpr OpDef update_operator(const char* name, Kernel cpu, Kernel cuda,
                                MergedKernel cuda_merged) {
  static_assert(Update::kSlots <= 3);
  constexpr Positions kWritten[] = {bit(0), bit(0) | bit(1), bit(0) | bit(1) | bit(2),
                                    bit(0) | bit(1) | bit(2) | bit(3)};
  return {.name = name,
          .infer = [](Inference& inference) { infer_update(inference, 2 + Update::kSlots); },
          .updates = kWritten[Update::kSlots],
          .stateful = true,
          .cpu = {cpu},
          .cuda = {.run = cuda, .run_merged = cuda_merged}};
}

}  // namespace ebb::optim
