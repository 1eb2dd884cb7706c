#include "ebb/core/kernels/functors/trigonometry.h"

#include "ebb/kernels/cuda/pointwise.h"

namespace ebb::cuda {
#include "ebb/core/kernels/functors/trigonometry.inc"
}
