#include "ebb/eager/tape.h"

#include "ebb/core/base/error.h"
#include "ebb/core/tensor/lineage.h"
#include "ebb/core/tensor/tape_record.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::detail {

namespace {

// Whether a history ends in a leaf through views alone: then its memory is that leaf's.
bool is_view_of_leaf(const Node* node) noexcept {
  while (node && node->op->view && !node->released) node = node->inputs[0].producer.get();
  return node && (node->op->is_source || node->released);  // a freed tape is found out later
}

}  // namespace

Mask wanting_inputs(const OpDef& op, Inputs inputs, CallSite site) {
  Mask wants = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Mask mine = bit(static_cast<int>(i));
    const TensorImpl& impl = *inputs[i].tensor->impl();
    if ((op.shape_only | op.stops_gradient) & mine) continue;
    if (!impl.node) {
      if (impl.storage && impl.storage->has_history() && !impl.is_detached)
        throw Error(message(op.name, updated_through_another_view(impl.spec), site));
      continue;
    }
    if (!mine) throw Error(message(op.name, gradient_beyond_mask(), site));
    wants |= mine;
    if (impl.node->op->is_source || !impl.storage || impl.version == impl.storage->version())
      continue;
    if (!is_view_of_leaf(impl.node.get()))
      throw Error(message(op.name, updated_through_another_view(impl.spec), site));
  }
  if (wants && op.updates) {
    const TensorImpl& target = *inputs[0].tensor->impl();
    if (target.storage->is_state() || is_view_of_leaf(target.node.get())) return 0;
  }
  return wants;
}

void record_on_tape(const OpDef& op, Inputs inputs, const Attributes& attributes, CallSite site,
                    Mask wants, Keeps keeps, Tensors& results) {
  const Ref<TapeRecord> record = make_ref<TapeRecord>(op, attributes, site);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorImpl& impl = *inputs[i].tensor->impl();
    const Mask mine = bit(static_cast<int>(i));
    Node::Source& source = record->inputs.emplace_back();
    TapeRecord::Input& input = record->kept_inputs.emplace_back(impl.spec);
    if (wants & mine) {
      source.producer = impl.node;
      source.output = impl.output;
    }
    if ((keeps.inputs & mine) && impl.storage) input.kept = Kept(impl.storage, impl.offset);
  }
  if (op.updates) inputs[0].tensor->impl()->storage->make_history();
  for (std::size_t i = 0; i < results.size(); ++i) {
    Kept& kept = record->kept_outputs.emplace_back();
    if (!results[i].defined()) {
      record->outputs.emplace_back();
      continue;
    }
    TensorImpl& impl = *results[i].impl();
    record->outputs.emplace_back(impl.spec);
    if ((keeps.outputs & bit(static_cast<int>(i))) && impl.storage)
      kept = Kept(impl.storage, impl.offset);
    // Counts and indices have no derivative.
    if (is_floating(impl.spec.dtype)) impl.tie(record, static_cast<std::uint32_t>(i));
  }
}

}  // namespace ebb::detail
