#include "ebb/core/tensor/trace.h"

#include <algorithm>

#include "ebb/core/base/error.h"
#include "ebb/core/tensor/tape_mode.h"

namespace ebb::detail {

const Device& Trace::device(const char* what, CallSite site) const {
  if (!device_)
    refuse(what,
           "the device of this compiled step is not known yet: give it a tensor as an argument, or "
           "the device as an option of compile()",
           site);
  return *device_;
}

void Trace::require_device(const Device& device, const char* what, CallSite site) {
  if (!device_) device_ = device;
  if (*device_ == device) return;
  refuse(what,
         "a tensor is on " + device.name() + ", and the compiled step runs on " + device_->name(),
         site);
}

namespace {
// The node that stands for a leaf: on the tape, or in the graph.
const Node* node_of(const Tensor& tensor) noexcept {
  return tensor.defined() ? tensor.impl()->node.get() : nullptr;
}
}  // namespace

void Trace::add_leaf(const Tensor& tensor, bool has_gradient) {
  leaves_.push_back({.tensor = tensor, .has_gradient = has_gradient});
  leaf_of_.emplace(node_of(tensor), &leaves_.back());
}

Trace::Leaf* Trace::leaf_behind(const Node& node) {
  if (node.extra && node.extra->tensor.defined()) return find_leaf(node.extra->tensor);
  const auto found = leaf_of_.find(&node);
  return found == leaf_of_.end() ? nullptr : found->second;
}

Trace::Leaf* Trace::find_leaf(const Tensor& tensor) {
  const Node* const node = node_of(tensor);
  if (!node) return nullptr;
  const auto found = leaf_of_.find(node);
  if (found != leaf_of_.end()) return found->second;
  if (node->op != &leaf_op) return nullptr;
  add_leaf(tensor, node->extra->tensor.defined());
  return &leaves_.back();
}

const Tensor& Trace::gradient(const Tensor& tensor) {
  static const Tensor none;
  Leaf* const leaf = find_leaf(tensor);
  if (!leaf) return none;
  if (!leaf->is_read && !leaf->is_changed) {
    leaf->is_read = true;
    if (leaf->has_gradient) {
      const std::string name = "gradient " + std::to_string(++fed_);
      leaf->gradient = leaf->before = graph_->placeholder(name, leaf->tensor.impl()->spec, entry());
    }
  }
  return leaf->gradient;
}

void Trace::set_gradient(const Tensor& tensor, Tensor gradient) {
  Leaf* const leaf = find_leaf(tensor);
  if (!leaf) return;
  leaf->gradient = std::move(gradient);
  leaf->is_changed = true;
}

bool Trace::depends_on(const void* state) const noexcept {
  return std::ranges::any_of(dependences_, [&](const auto& known) { return known.of == state; });
}

void refuse_while_tracing(const char* what, CallSite site) {
  if (tape_mode().trace)
    refuse(what,
           "uses a value while compile() traces the function, which has none: it runs once for "
           "each shape, and later calls would not come here. Return the tensor and read it "
           "outside; choose with where() instead of a branch",
           site);
}

}  // namespace ebb::detail
