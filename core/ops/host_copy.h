// Operators that plans add to move values to page-locked memory of the host and back.
#pragma once
#include "ebb/core/tensor/op_def.h"

namespace ebb {

// Begin a copy of input 0 to output 0, beside other work; for whole buffers, as bytes.
extern const OpDef move_out_op, move_in_op;
// Ends it: what follows finds it done. Reads both ends, so that both live until then.
extern const OpDef moved_op;

}  // namespace ebb
