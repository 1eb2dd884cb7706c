#include "ebb/eager/tape.h"

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/base/error.h"
#include "ebb/core/tensor/lineage.h"
#include "ebb/core/tensor/tape_record.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::detail {

namespace {

// Whether a history ends in a leaf through views alone: then its memory is the leaf's.
bool is_view_of_leaf(const Node* node) noexcept {
  while (node && node->op->view && !node->released) node = node->inputs[0].producer.get();
  return node && (node->op->is_source || node->released);  // reverse mode reports a freed tape
                                                           // later
}

}  // namespace

IndexSet wanting_inputs(const OpDef& op, Inputs inputs, CallSite site, bool& lost_history) {
  IndexSet wants;
  const bool passes_all = op.shape_only.empty() && op.stops_gradient.empty();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorImpl& impl = *inputs[i].tensor->impl();
    if (!passes_all && (op.shape_only.has(i) || op.stops_gradient.has(i))) continue;
    if (!impl.node) {
      lost_history |= impl.lost_history;
      if (impl.storage && impl.storage->has_history() && !impl.is_detached)
        refuse(op.name, updated_through_another_view(impl.spec), site);
      continue;
    }
    wants.insert(i);
    if (impl.node->op->is_source || !impl.storage || impl.version == impl.storage->version())
      continue;
    if (!is_view_of_leaf(impl.node.get()))
      refuse(op.name, updated_through_another_view(impl.spec), site);
  }
  if (lost_history && !wants.empty()) refuse_lost_history(op.name, site);
  if (!op.updates.empty() && !wants.empty()) {
    const TensorImpl& target = *inputs[0].tensor->impl();
    if (target.storage->is_state() || is_view_of_leaf(target.node.get())) return {};
  }
  return wants;
}

void record_on_tape(const OpDef& op, Inputs inputs, const Attributes& attributes, CallSite site,
                    const IndexSet& wants, Tensors& results) {
  const bool keeps_inputs = op.keeps_input || op.compose || !op.keeps.inputs.empty();
  const bool keeps_outputs = op.keeps_output || !op.keeps.outputs.empty();
  Ref<TapeRecord> owned = make_ref<TapeRecord>(op, attributes, site);
  TapeRecord* const record = owned.get();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorImpl& impl = *inputs[i].tensor->impl();
    Node::Source& source = record->inputs.emplace_back();
    TapeRecord::Input& input = record->kept_inputs.emplace_back(impl.spec);
    if (wants.has(i)) {
      source.producer = impl.node;
      source.output = impl.output;
    }
    if (keeps_inputs && impl.storage && keeps_input(op, i, wants))
      input.kept = Kept(impl.storage, impl.offset);
  }
  if (!op.updates.empty()) inputs[0].tensor->impl()->storage->make_history();
  for (std::size_t i = 0; i < results.size(); ++i) {
    Kept& kept = record->kept_outputs.emplace_back();
    if (!results[i].defined()) {
      record->outputs.emplace_back();
      continue;
    }
    TensorImpl& impl = *results[i].impl();
    record->outputs.emplace_back(impl.spec);
    if (keeps_outputs && impl.storage && keeps_output(op, i, wants))
      kept = Kept(impl.storage, impl.offset);
    // Counts and indices have no derivative.
    if (is_floating(impl.spec.dtype))
      impl.tie(i + 1 == results.size() ? std::move(owned) : owned, static_cast<std::uint32_t>(i));
  }
}

}  // namespace ebb::detail
