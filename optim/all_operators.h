#pragma once
#include <span>

#include "ebb/core/tensor/op_def.h"

namespace ebb::optim {

// Every operator of optimizers, which the tests loop over as over core's. An optimizer is its rule
// and its operator in one file of optim/, whose header declares its options and the operator; its
// arithmetic in optim/kernels/ and a line in updates.inc there; and a sample and a reference in
// tests/ops/.
std::span<const OpDef* const> all_operators() noexcept;

}  // namespace ebb::optim
