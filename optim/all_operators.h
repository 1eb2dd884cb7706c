#pragma once
#include <span>

#include "ebb/core/tensor/op_def.h"

namespace ebb::optim {

// Every operator of optimizers, which the tests loop over as over core's. An optimizer is its rule
// and its operator in one file of optim/, whose header declares its options and the operator; what
// its kernels are told in optim/kernels/, a kernel per device, one entry here, and a sample and a
// reference in tests/ops/.
std::span<const OpDef* const> all_operators() noexcept;

}  // namespace ebb::optim
