// Shared by lstm and gru, which differ in names and in the cell (core/kernels/recurrent.h).
#pragma once
#include "ebb/core/kernels/recurrent.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb::detail {

// The rules of both operators, and of both gradients.
void infer_recurrent(Inference& inference);
void infer_recurrent_backward(Inference& inference);
Tensors recurrent_gradient(const GradientContext& g);

// The rule of one step: x [batch, in], the states [batch, hidden] if there are any, W, R, b.
void infer_cell(Inference& inference);

struct RecurrentCall {
  RecurrentCell cell;
  Tensors states;   // the initial ones: all, or none
  Tensors weights;  // of each layer W, R, b
  double dropout;
  Phase phase;
  const Tensor& lengths;
};
// The outputs: sequence, the last states, the reserve. Throws as lstm() says.
Tensors recurrent(const OpDef& op, const Operand& x, RecurrentCall call);

template <class Weights>
Tensors weights_of(std::span<const Weights> layers) {
  Tensors weights;
  weights.reserve(3 * layers.size());
  for (const Weights& layer : layers)
    for (const Tensor* weight : {&layer.input, &layer.recurrent, &layer.bias})
      weights.push_back(*weight);
  return weights;
}

}  // namespace ebb::detail
