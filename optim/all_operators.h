#pragma once
#include <span>

#include "ebb/core/tensor/op_def.h"

namespace ebb::optim {

// The operators of the update rules, each on a parameter, its slots and its gradient
// (optim/kernels/rules.h); average_update on an average and a parameter.
#define EBB_UPDATE(name, Rule) extern const OpDef name##_op;
#include "ebb/optim/kernels/rules.inc"
// sum += samples gradient; the scale that clips gradients; the rate of a step.
extern const OpDef accumulate_op, clip_scale_op, schedule_op;

// Every operator of the optimizers; the tests loop over them as over core's. A new optimizer needs
// a header of optim/ that declares its options, with its rule and operator in rules.cpp; its
// arithmetic and a line in optim/kernels/rules.h and rules.inc; a sample and a reference in
// tests/ops/.
std::span<const OpDef* const> all_operators() noexcept;

}  // namespace ebb::optim
