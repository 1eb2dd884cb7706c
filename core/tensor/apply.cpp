#include "ebb/core/tensor/apply.h"

#include "ebb/core/base/error.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/core/tensor/trace.h"

namespace ebb {

namespace {

// Whether writes into this tensor would be lost: it is a copy of another's elements and ends with
// the expression that made it.
bool is_passing_copy(const Input& input) noexcept {
  if (!input.expiring || !input.tensor->defined()) return false;
  const detail::TensorImpl& impl = *input.tensor->impl();
  return impl.is_selection && impl.unique();
}

void require_updatable(const OpDef& op, Inputs inputs, CallSite site) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!op.updates.has(i)) continue;
    if (const auto& storage = inputs[i].tensor->impl()->storage)
      detail::require_writable(*storage, op.name, site);
    if (is_passing_copy(inputs[i]))
      detail::refuse(op.name,
                     "updates a copy and leaves x as it is: x[i], select, transpose, index_select "
                     "and slices of inner axes copy. To change x: assign_slice(x, begin, value, "
                     "{.axis}) writes a part of it, slice(x, begin, end) of the leading axis is "
                     "x's own memory, x = where(..) and x = index_add(..) make another x. To "
                     "change a copy: clone() it, or give it a name",
                     site);
  }
}

}  // namespace

Tensors apply(const OpDef& op, Inputs inputs, const Attributes& attributes, CallSite site,
              const IndexSet& unwanted) {
  Recorder* recorder = detail::tape_mode().tracing;
  unsigned layer = 0;  // of the parameters, state and slots among the inputs
  bool has_several = false;
  for (const Input& input : inputs) {
    if (!input.tensor || !input.tensor->defined())
      detail::refuse(op.name, "an input is a tensor that holds nothing", site);
    const detail::TensorImpl& impl = *input.tensor->impl();
    if (!recorder) recorder = impl.recorder.get();
    const unsigned of_input = detail::layer_of(impl);
    if (!of_input || of_input == layer) continue;
    has_several |= layer != 0;
    layer = of_input;
  }
  if (layer && !has_several) site.layer = layer;
  if (!op.updates.empty()) require_updatable(op, inputs, site);
  const bool selects = op.selects || (op.view && is_passing_copy(inputs[0]));
  Tensors results = recorder ? recorder->record(op, inputs, attributes, site)
                             : detail::run_now(op, inputs, attributes, site, unwanted);
  if (selects) results[0].impl()->is_selection = true;
  return results;
}

Tensors apply_on(const Device& device, const OpDef& op, const Attributes& attributes,
                 CallSite site) {
  if (Recorder* recorder = detail::tape_mode().tracing) {
    if (detail::Trace* trace = detail::tape_mode().trace)
      trace->require_device(device, op.name, site);
    return recorder->record(op, {}, attributes, site);
  }
  return detail::run_now(op, {}, attributes, site, {}, &device);
}

}  // namespace ebb
