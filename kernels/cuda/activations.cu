#include "ebb/core/kernels/functors/activations.h"

#include "ebb/kernels/cuda/pointwise.h"

namespace ebb::cuda {
#include "ebb/core/kernels/functors/activations.inc"
}
