#include "ebb/core/kernels/layout.h"

#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/kernels/slice.h"
#include "ebb/kernels/cpu/strided_copy.h"

namespace ebb::cpu {
#include "ebb/core/kernels/layout_kernels.inc"
}
