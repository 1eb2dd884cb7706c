#pragma once
#include <span>

#include "ebb/core/tensor/op_def.h"

namespace ebb {

// Every operator of core; the optimizers' are in optim/all_operators.h. The tests loop over them. A
// new operator is one entry here (a pointwise one: in the list of its family,
// core/kernels/functors/*.inc), beside its definition, its kernels and its sample in tests/ops/.
std::span<const OpDef* const> all_operators() noexcept;

}  // namespace ebb
