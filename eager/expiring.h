// Temporaries of the caller's expression, whose memory an operator may use up.
#pragma once
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::detail {

// Checked first: most applications have no input that is a temporary.
inline bool has_temporaries(Inputs inputs) noexcept {
  for (const Input& input : inputs)
    if (input.expiring) return true;
  return false;
}

// The inputs that the operator may destroy: temporaries that no gradient keeps. `wants`: the inputs
// that want a gradient.
IndexSet destroyed_inputs(const OpDef& op, Inputs inputs, const IndexSet& wants);

// The memory of a temporary that output 0 may live in, or null. The next operator of the expression
// can take it over in turn.
Ref<Storage> take_over(const OpDef& op, Inputs inputs, const IndexSet& wants, const Spec& output,
                       memory::Category category);

// Frees temporaries as soon as they have been read, not when their expression ends.
void free_expired(Inputs inputs);

}  // namespace ebb::detail
