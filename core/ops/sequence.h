#pragma once
#include "ebb/core/ops/arguments.h"

namespace ebb {

// x [batch, time, ...] with the first lengths[b] steps of each row b reversed. Later steps stay in
// place; lengths are [batch], of integers. A length outside [0, time] makes its row NaN, or 0 where
// x is not floating. Its own inverse, and its own gradient. Throws ShapeError.
Tensor reverse_sequence(const Operand& x, const Operand& lengths);

extern const OpDef reverse_sequence_op;

}  // namespace ebb
