#include "ebb/core/kernels/functors/arithmetic.h"

#include "ebb/kernels/cpu/pointwise.h"

namespace ebb::cpu {
#include "ebb/core/kernels/functors/arithmetic.inc"
EBB_PAIR(add_assign, Add)  // for kernels/cpu/update.cpp
}  // namespace ebb::cpu
