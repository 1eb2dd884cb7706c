#pragma once
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

// x in memory of its own; any dtype. Gradients pass through.
Tensor copy(const Operand& x);
// x converted to dtype: f32, f64, i32, i64, u8 and bool among each other; x itself where it has it
// already. Towards integers values are cut, not rounded. The gradient passes between floating
// dtypes. Throws ShapeError for f16 and bf16.
Tensor cast(const Operand& x, DType dtype);

// What Tensor::detach() records in a graph: x itself, in x's memory, with no gradient to it.
extern const OpDef copy_op, cast_op, detach_op;

}  // namespace ebb
