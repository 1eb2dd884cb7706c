#include "ebb/core/kernels/functors/powers.h"

#include "ebb/kernels/cuda/pointwise.h"

namespace ebb::cuda {
#include "ebb/core/kernels/functors/powers.inc"
}
