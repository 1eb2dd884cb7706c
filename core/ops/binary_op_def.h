#pragma once
#include <optional>

#include "ebb/core/tensor/op_def.h"

namespace ebb {

// A pointwise operator of two operands, either of which may be a plain number. The three forms are
// operators of their own, since they keep different things for their gradients.
struct BinaryOpDef {
  OpDef tensors;
  OpDef number_right;  // x op n
  OpDef number_left;   // n op x
  // The dtype that two tensors of different dtypes are cast to before the operator; nullopt refuses
  // them. Null refuses every such pair.
  std::optional<DType> (*common)(DType a, DType b) = nullptr;
};

}  // namespace ebb
