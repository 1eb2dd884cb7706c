#include "ebb/core/kernels/functors/extremes.h"

#include "ebb/kernels/cuda/pointwise.h"

namespace ebb::cuda {
#include "ebb/core/kernels/functors/extremes.inc"
}
