#pragma once
#include "ebb/core/kernels/kernel.h"

namespace ebb::cpu {

// out[i] = in[i] to the power of a number, attributes NumberOperand; floating. The powers 1, 2, 3,
// 1/2 and -1 take little time. out may be in.
KernelFunction pow_number;

}  // namespace ebb::cpu
