#include "ebb/core/tensor/apply.h"

#include "ebb/core/base/error.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb {

Tensors apply(const OpDef& op, Inputs inputs, const Attributes& attributes, CallSite site,
              const IndexSet& unwanted) {
  Recorder* recorder = detail::tape_mode().tracing;
  for (const Input& input : inputs) {
    if (!input.tensor || !input.tensor->defined())
      throw Error(detail::message(op.name, "an input is a tensor that holds nothing", site));
    if (recorder) break;
    recorder = input.tensor->impl()->recorder.get();
  }
  if (recorder) return recorder->record(op, inputs, attributes, site);
  return detail::run_now(op, inputs, attributes, site, unwanted);
}

Tensors apply_on(const Device& device, const OpDef& op, const Attributes& attributes,
                 CallSite site) {
  if (Recorder* recorder = detail::tape_mode().tracing)
    return recorder->record(op, {}, attributes, site);
  return detail::run_now(op, {}, attributes, site, {}, &device);
}

}  // namespace ebb
