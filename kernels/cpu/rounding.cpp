#include "ebb/core/kernels/functors/rounding.h"

#include "ebb/kernels/cpu/pointwise.h"

namespace ebb::cpu {
#include "ebb/core/kernels/functors/rounding.inc"
}
