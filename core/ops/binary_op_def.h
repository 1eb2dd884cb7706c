#pragma once
#include "ebb/core/tensor/op_def.h"

namespace ebb {

// A pointwise operator of two operands, either of which may be a plain number: one operator each,
// since they keep and give gradients to different things.
struct BinaryOpDef {
  OpDef tensors;
  OpDef number_right;  // x op n
  OpDef number_left;   // n op x
};

}  // namespace ebb
