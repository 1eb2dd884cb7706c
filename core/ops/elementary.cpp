#include "ebb/core/ops/elementary.h"

#include "ebb/core/kernels/functors/elementary.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/pointwise_rules.h"

namespace ebb {

#define EBB_FAMILY "ebb/core/kernels/functors/elementary.inc"
#include "ebb/core/ops/define_pointwise.inc"

using detail::from_x, detail::from_y, detail::unary;

constinit const OpDef exp_op =
    unary<functors::Exp>("exp", from_y([](Operand dy, Operand y) { return dy * y; }));
constinit const OpDef log_op =
    unary<functors::Log>("log", from_x([](Operand dy, Operand x) { return dy / x; }));
constinit const OpDef tanh_op = unary<functors::Tanh>(
    "tanh", from_y([](Operand dy, Operand y) { return dy * (1 - square(y)); }));

}  // namespace ebb
