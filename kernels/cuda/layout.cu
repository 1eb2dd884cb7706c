#include "ebb/core/kernels/layout.h"

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/kernels/slice.h"
#include "ebb/core/kernels/update.h"
#include "ebb/kernels/cuda/strided_copy.h"

namespace ebb::cuda {
#include "ebb/core/kernels/layout_kernels.inc"
}
