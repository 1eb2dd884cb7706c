#include "ebb/core/apply.h"

#include "ebb/core/error.h"
#include "ebb/core/tape_mode.h"
#include "ebb/core/tensor_impl.h"

namespace ebb {

Tensors apply(const OpDef& op, Inputs inputs, const Attributes& attributes, CallSite site) {
  // Inside a gradient rule the line that applies an operator is the library's.
  if (const CallSite user = detail::tape_mode().site; user.line) site = user;
  for (const Input& input : inputs) {
    if (!input.tensor->defined())
      throw Error(detail::message(op.name, "an input is a tensor that holds nothing", site));
    if (Recorder* recorder = input.tensor->impl()->recorder.get())
      return recorder->record(op, inputs, attributes, site);
  }
  return detail::run_now(op, inputs, attributes, site);
}

}  // namespace ebb
