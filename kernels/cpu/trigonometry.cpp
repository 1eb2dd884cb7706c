#include "ebb/core/kernels/functors/trigonometry.h"

#include "ebb/kernels/cpu/pointwise.h"
#include "ebb/kernels/cpu/trigonometry.h"

namespace ebb::cpu {
#include "ebb/core/kernels/functors/trigonometry.inc"
}
