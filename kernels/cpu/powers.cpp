#include "ebb/core/kernels/functors/powers.h"

#include "ebb/kernels/cpu/pointwise.h"
#include "ebb/kernels/cpu/powers.h"

namespace ebb::cpu {
#include "ebb/core/kernels/functors/powers.inc"
}
