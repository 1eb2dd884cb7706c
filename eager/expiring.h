// Temporaries of the caller's expression, whose memory an operator may use up.
#pragma once
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::detail {

// Most applications have no input that is a temporary, and ask no further.
inline bool has_temporaries(Inputs inputs) noexcept {
  for (const Input& input : inputs)
    if (input.expiring) return true;
  return false;
}

// Of the inputs that the operator destroys those that expire, and that no gradient keeps. `wants`:
// the inputs that want a gradient.
IndexSet destroyed_inputs(const OpDef& op, Inputs inputs, const IndexSet& wants);

// The memory of an input that output 0 may live in, so that the next operator of the expression can
// take it over in turn; or none.
Ref<Storage> take_over(const OpDef& op, Inputs inputs, const IndexSet& wants, const Spec& output,
                       memory::Category category);

// What expires in an expression goes as soon as it has been read, not when the expression ends.
void free_expired(Inputs inputs);

}  // namespace ebb::detail
