#include "ebb/core/kernels/functors/rounding.h"

#include "ebb/kernels/cuda/pointwise.h"

namespace ebb::cuda {
#include "ebb/core/kernels/functors/rounding.inc"
}
