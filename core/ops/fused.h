#pragma once
#include "ebb/core/tensor/op_def.h"

namespace ebb {

// A chain of pointwise operators (core/kernels/fused.h), which a graph's plan makes. It is in no
// graph, so it has no shape rule and no gradient.
extern const OpDef fused_op;

}  // namespace ebb
