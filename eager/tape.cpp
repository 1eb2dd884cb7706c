#include "ebb/eager/tape.h"

#include "ebb/core/tensor_impl.h"

namespace ebb::detail {

Mask wanting_inputs(const OpDef& op, Inputs inputs) noexcept {
  if (op.updates) return 0;
  Mask wants = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].tensor->impl()->node) wants |= bit(static_cast<int>(i));
  return wants & ~op.shape_only;
}

void record_on_tape(const OpDef& op, Inputs inputs, const Attributes& attributes, CallSite site,
                    Mask wants, Keeps keeps, Tensors& results) {
  Ref<Node> node = make_ref<Node>(op, attributes, site);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorImpl& impl = *inputs[i].tensor->impl();
    const Mask mine = bit(static_cast<int>(i));
    Node::Source& source = node->inputs.emplace_back();
    source.spec = impl.spec;
    if (wants & mine) {
      source.producer = impl.node;
      source.output = impl.output;
    }
    if ((keeps.inputs & mine) && impl.storage) source.kept = Kept(impl.storage, impl.offset);
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    Node::Result& result = node->outputs.emplace_back();
    if (!results[i].defined()) continue;
    TensorImpl& impl = *results[i].impl();
    result.spec = impl.spec;
    if ((keeps.outputs & bit(static_cast<int>(i))) && impl.storage)
      result.kept = Kept(impl.storage, impl.offset);
    if (!is_floating(impl.spec.dtype)) continue;  // counts and indices have no derivative
    impl.node = node;
    impl.output = static_cast<std::uint32_t>(i);
  }
}

}  // namespace ebb::detail
