#include "ebb/core/kernels/functors/losses.h"

#include "ebb/kernels/cpu/elementary.h"
#include "ebb/kernels/cpu/pointwise.h"

namespace ebb::cpu {
#include "ebb/core/kernels/functors/losses.inc"
}
