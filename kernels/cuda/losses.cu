#include "ebb/core/kernels/functors/losses.h"

#include "ebb/kernels/cuda/pointwise.h"

namespace ebb::cuda {
#include "ebb/core/kernels/functors/losses.inc"
}
