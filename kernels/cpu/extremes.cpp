#include "ebb/core/kernels/functors/extremes.h"

#include "ebb/kernels/cpu/pointwise.h"

namespace ebb::cpu {
#include "ebb/core/kernels/functors/extremes.inc"
}
