#pragma once
#include <optional>

#include "ebb/core/tensor/op_def.h"

namespace ebb {

// A pointwise operator of two operands, either of which may be a plain number: one operator each,
// since they keep and give gradients to different things.
struct BinaryOpDef {
  OpDef tensors;
  OpDef number_right;  // x op n
  OpDef number_left;   // n op x
  // The dtype that two tensors of different dtypes are cast to before they are computed with; none:
  // they are refused, as all are where this is null.
  std::optional<DType> (*common)(DType a, DType b) = nullptr;
};

}  // namespace ebb
