#pragma once
#include <span>

#include "ebb/core/tensor/op_def.h"

namespace ebb::optim {

// Every operator of the optimizers; the tests loop over them as over core's. A new optimizer needs
// a rule and an operator in one file of optim/, whose header declares its options and the operator;
// its arithmetic in optim/kernels/ and a line in updates.inc there; a sample and a reference in
// tests/ops/.
std::span<const OpDef* const> all_operators() noexcept;

}  // namespace ebb::optim
