#include "ebb/core/kernels/functors/trigonometry.h"

#include "ebb/kernels/cpu/one_by_one.h"
#include "ebb/kernels/cpu/pointwise.h"

namespace ebb::cpu {

EBB_ONE_BY_ONE(sine, sin)
EBB_ONE_BY_ONE(cosine, cos)
EBB_ONE_BY_ONE(tangent, tan)
EBB_ONE_BY_ONE(asin, asin)
EBB_ONE_BY_ONE(acos, acos)
EBB_ONE_BY_ONE(atan, atan)
EBB_ONE_BY_ONE(sinh, sinh)
EBB_ONE_BY_ONE(cosh, cosh)
EBB_ONE_BY_ONE(asinh, asinh)
EBB_ONE_BY_ONE(acosh, acosh)
EBB_ONE_BY_ONE(atanh, atanh)
EBB_ONE_BY_ONE(atan2, atan2)

#include "ebb/core/kernels/functors/trigonometry.inc"
}  // namespace ebb::cpu
