#include "ebb/core/kernels/functors/elementary.h"

#include "ebb/kernels/cuda/pointwise.h"

namespace ebb::cuda {
#include "ebb/core/kernels/functors/elementary.inc"
}
