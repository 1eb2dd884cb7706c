#pragma once
#include "ebb/core/apply.h"

namespace ebb::detail {

// The inputs through which a gradient would flow: those with a history, as far as `op` has a
// derivative at all.
Mask wanting_inputs(const OpDef& op, Inputs inputs) noexcept;

// Makes the record of an application that has run, and ties `results` to it.
void record_on_tape(const OpDef& op, Inputs inputs, const Attributes& attributes, CallSite site,
                    Mask wants, Keeps keeps, Tensors& results);

}  // namespace ebb::detail
