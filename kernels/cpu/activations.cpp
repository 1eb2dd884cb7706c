#include "ebb/core/kernels/functors/activations.h"

#include "ebb/kernels/cpu/elementary.h"
#include "ebb/kernels/cpu/pointwise.h"

namespace ebb::cpu {
#include "ebb/core/kernels/functors/activations.inc"
// For activation_backward in kernels/cpu/linear.cpp.
EBB_PAIR(tanh_gradient, TanhGradient)
EBB_PAIR(sigmoid_gradient, SigmoidGradient)
}  // namespace ebb::cpu
