#pragma once
#include <span>

#include "ebb/core/tensor/op_def.h"

namespace ebb::optim {

// Every operator of the optimizers; the tests loop over them as over core's. A new optimizer needs
// a header of optim/ that declares its options and its operator, with their definitions in
// rules.cpp; its arithmetic and a line in optim/kernels/rules.h and rules.inc; a sample and a
// reference in tests/ops/.
std::span<const OpDef* const> all_operators() noexcept;

}  // namespace ebb::optim
