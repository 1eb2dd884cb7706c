#pragma once
#include "ebb/core/tensor/op_def.h"

namespace ebb {

// What Tensor::full() and zeros() apply, without inputs; and Tensor::to(), whose input is on
// another device than its output.
extern const OpDef full_op, to_op;

}  // namespace ebb
