#include "ebb/core/kernels/functors/arithmetic.h"

#include "ebb/kernels/cuda/pointwise.h"

namespace ebb::cuda {
#include "ebb/core/kernels/functors/arithmetic.inc"
}
