#pragma once
#include "ebb/core/tensor/apply.h"

namespace ebb::detail {

// The inputs through which a gradient flows: inputs with a history, where `op` has a derivative. An
// update of a leaf's memory has none. Throws Error for an input whose memory was updated in place
// through another tensor, so that its history no longer describes its values, and for inputs with a
// history beside one that has lost it. `lost_history` is set where no input has a history, but one
// has lost it.
IndexSet wanting_inputs(const OpDef& op, Inputs inputs, CallSite site, bool& lost_history);

// Makes the record of an application that has run, and ties `results` to it.
void record_on_tape(const OpDef& op, Inputs inputs, const Attributes& attributes, CallSite site,
                    const IndexSet& wants, Tensors& results);

}  // namespace ebb::detail
