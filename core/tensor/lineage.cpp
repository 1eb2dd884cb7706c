#include "ebb/core/tensor/lineage.h"

#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::detail {

std::uint32_t version_made(const Node& producer, std::uint32_t output) noexcept {
  if (output != 0 || !producer.root) return 0;
  return producer.inputs[0].version + (producer.op->updates.empty() ? 0 : 1);
}

bool is_captured_constant(const Node::Source& source) noexcept {
  const Node* node = target_of(source).node;
  while (node->op->view) node = target_of(node->inputs[0]).node;
  if (!node->extra || !node->extra->tensor.defined()) return false;
  const TensorImpl& impl = *node->extra->tensor.impl();
  return impl.storage && !impl.storage->is_state() && !impl.node;
}

bool carries_gradient(const Node& node, std::size_t i) noexcept {
  const Node::Source& source = node.inputs[i];
  if (!node.has_history || !source.producer) return false;
  if (node.op->shape_only.has(i) || node.op->stops_gradient.has(i)) return false;
  return is_floating(source.producer->outputs[source.output].dtype);
}

std::string overlaps_target() {
  return "an input shares a part of the memory that is updated, which would be overwritten while "
         "it is read; copy() it first";
}

std::string updates_shares() {
  return "ranks have shares of this parameter, which only an optimizer updates";
}

std::string updated_through_another_view(const Spec& spec) {
  return "an input, a " + spec.to_string() +
         ", has been updated in place through another view of its memory, so that its history does "
         "not tell how it came about; use the updated tensor itself, or compute a new one";
}

Node::Source source_of(const Tensor& tensor) {
  const TensorImpl& impl = *tensor.impl();
  Node::Source source{impl.node, impl.output, impl.version};
  if (source.version == TensorImpl::kNewest) source.version = newest_version(root_of(source));
  return source;
}

Node::Source gradient_source(const Node::Source& source) {
  const Root root = root_of(source);
  if (is_state(root)) {
    const Root target = target_of(source);
    return {Ref<Node>(target.node), target.output, source.version};
  }
  if (source.version == version_made(*source.producer, source.output)) return source;
  Node* update = updates_of(root)[source.version - 1];
  if (target_of(update->inputs[0]) == target_of(source))
    return {Ref<Node>(update), 0, source.version};
  return {};
}

}  // namespace ebb::detail
