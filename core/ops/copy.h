#pragma once
#include "ebb/core/ops/arguments.h"

namespace ebb {

// A copy of x in memory of its own. Any dtype. Gradients pass through.
Tensor copy(const Operand& x);
// x converted to another dtype; x itself where it has that dtype. Towards integers values are cut,
// not rounded. Towards f16 and bf16 they are rounded to f32 and then to nearest even. The gradient
// passes between floating dtypes.
Tensor cast(const Operand& x, DType dtype);

// detach is Tensor::detach() in a graph: x itself, in x's memory, with no gradient to it.
extern const OpDef copy_op, cast_op, detach_op;

// Plans add these to move values to page-locked memory of the host and back. move_out and move_in
// begin a copy of input 0 to output 0, beside other work; for whole buffers, as bytes. moved ends
// it: what follows finds it done. It reads both ends, so that both live until then.
extern const OpDef move_out_op, move_in_op, moved_op;

}  // namespace ebb
