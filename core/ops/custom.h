// Shared by operators made from functors (custom_operator.h).
#pragma once
#include <initializer_list>

#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb::detail {

// Tensors of one floating dtype that broadcast by NumPy's rules.
void infer_pointwise(Inference& inference);
// Nothing beside the output.
MemoryNeeds pointwise_memory(const MemoryQuery& query) noexcept;

// Throws Error where an operand is a number, or holds nothing. The call site is the first
// operand's.
Tensor apply_pointwise(const OpDef& op, std::initializer_list<Operand> operands,
                       const Attributes& attributes);

}  // namespace ebb::detail
