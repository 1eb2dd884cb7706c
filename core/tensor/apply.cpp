#include "ebb/core/tensor/apply.h"

#include "ebb/core/base/error.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb {

Tensors apply(const OpDef& op, Inputs inputs, const Attributes& attributes, CallSite site,
              const IndexSet& unwanted) {
  for (const Input& input : inputs) {
    if (!input.tensor->defined())
      throw Error(detail::message(op.name, "an input is a tensor that holds nothing", site));
    if (Recorder* recorder = input.tensor->impl()->recorder.get())
      return recorder->record(op, inputs, attributes, site);
  }
  return detail::run_now(op, inputs, attributes, site, unwanted);
}

}  // namespace ebb
