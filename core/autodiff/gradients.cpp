// Tensor's functions for gradients: leaves, history, backward() and gradients().
#include <algorithm>
#include <unordered_set>
#include <vector>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/lineage.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tape_record.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/core/tensor/trace.h"

namespace ebb {

namespace {

void require_concrete(const Tensor& tensor, const char* what) {
  if (!tensor.defined() || !tensor.impl()->storage)
    detail::refuse(what, "takes a concrete tensor, not " + tensor.to_string());
}

Node* leaf_of(const Tensor& tensor) {
  Node* node = tensor.defined() ? tensor.impl()->node.get() : nullptr;
  return node && node->op == &leaf_op ? node : nullptr;
}

// Tells one memory from another: a storage's address or, in a graph, its root's address plus the
// output number. (A node is larger than the number of its outputs, so sums do not collide.)
std::uintptr_t memory_of(const detail::TensorImpl& impl) {
  if (impl.storage) return reinterpret_cast<std::uintptr_t>(impl.storage.get());
  const detail::Root root = detail::root_of(*impl.node, impl.output);
  return reinterpret_cast<std::uintptr_t>(root.node) + root.output;
}

// The gradient that reverse mode starts from. Throws unless the output is one number.
Tensor one_like(const Tensor& output, const char* what, CallSite site) {
  const Shape& shape = output.shape();
  if (shape.is_open() || shape.elements() != 1)
    detail::refuse(what, "takes a one-element tensor, a loss, not " + output.to_string() +
                             "; reduce it first, with sum or mean");
  const detail::TapeModeScope scope;
  detail::tape_mode().category = memory::Category::gradient;
  return fill_like(Operand(output, site), 1);
}

// Whether a symbolic tensor depends on anything that has a gradient. (An eager tensor that does not
// has no node.)
bool reaches_source(const Tensor& output) {
  detail::Trace* const trace = detail::tape_mode().trace;
  const std::unordered_set<const Node*> below = detail::nodes_below(output);
  return std::ranges::any_of(below, [&](const Node* node) {
    return node->op->is_source || (trace && trace->leaf_behind(*node));
  });
}

Tensor detached(const Input& x, CallSite site) {
  const detail::CallSiteScope at(site);
  if (!x.tensor->defined() || detail::is_shape_only(*x.tensor->impl()))
    require_concrete(*x.tensor, "detach");
  return apply_one(detach_op, {x}, {}, site);
}

constexpr const char* kNoHistory =
    "this tensor has no history: nothing below it was made with_grad(), or it was computed under "
    "NoGrad";
constexpr const char* kFromCompiled =
    "this tensor was computed from a result of a compiled step, which has no history; call "
    "backward() inside the step";

// backward() of a function that compile() traces: adds to the gradients of the leaves below `loss`,
// as reverse_into_leaves() does on the tape.
void backward_traced(detail::Trace& trace, const Tensor& loss, const BackwardOptions& options,
                     CallSite site) {
  std::vector<Node*> below;
  for (const Node* node : detail::nodes_below(loss)) below.push_back(const_cast<Node*>(node));
  std::ranges::sort(below, {}, &Node::number);
  std::vector<detail::Trace::Leaf*> leaves;
  std::vector<detail::Edge> edges;
  for (Node* node : below)
    if (detail::Trace::Leaf* const leaf = trace.leaf_behind(*node)) {
      leaves.push_back(leaf);
      edges.push_back({node, 0});
    }
  if (leaves.empty()) detail::refuse("backward", kNoHistory);
  const Tensor dy = one_like(loss, "backward", site);
  const Tensors found = detail::reverse({&loss, 1}, {&dy, 1}, edges, {options, site});
  const detail::TapeModeScope scope;
  detail::tape_mode().records = options.create_graph;
  detail::tape_mode().category = memory::Category::gradient;
  // Each gradient has memory of its own, so that an update of one leaves the others alone.
  std::unordered_set<std::uintptr_t> taken;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const Tensor& leaf = leaves[i]->tensor;
    const Tensor sum = trace.gradient(leaf);
    Tensor dy = found[i];
    if (!dy.defined()) {  // ended on the way, as in round(): the gradient is 0
      if (!sum.defined()) trace.set_gradient(leaf, fill_like({leaf, site}, 0));
      continue;
    }
    if (sum.defined())
      dy = sum + dy;
    else if (!taken.insert(memory_of(*dy.impl())).second)
      dy = copy({dy, site});
    trace.set_gradient(leaf, dy);
  }
}

// In both modes a result of gradients() is a constant to further ones unless told otherwise.
[[noreturn]] void refuse_without_history(const char* what) {
  detail::refuse(what,
                 "the output has no history: it depends on nothing that has one, was computed "
                 "under NoGrad, or of a gradient made without {.create_graph = true}");
}

}  // namespace

Tensor Tensor::with_grad(CallSite site) const {
  const detail::CallSiteScope at(site);
  detail::Trace* const trace = detail::tape_mode().trace;
  if (!trace || !defined()) require_concrete(*this, "with_grad");
  if (!is_floating(dtype()))
    detail::refuse("with_grad",
                   "a tensor of " + impl_->spec.to_string() + " cannot have a gradient");
  if (trace) {
    const Tensor leaf = trace->symbolic(*this, "with_grad", site).detach(site);
    trace->add_leaf(leaf, false);
    return leaf;
  }
  return detail::make_leaf(*this);
}

Tensor detail::make_leaf(const Tensor& concrete) {
  const TensorImpl& of = *concrete.impl();
  Tensor leaf = make_concrete(of.spec, of.storage, of.offset);
  const CallSite site = CallSite().in(of.storage->layer());
  auto node = make_ref<Node>(leaf_op, Attributes(), site, TapeRecord::next_number());
  node->outputs.push_back(of.spec);
  node->make_extra().device = of.storage->device();
  leaf.impl()->tie(std::move(node), 0);
  leaf.impl()->is_leaf = true;
  return leaf;
}

Tensor Tensor::detach(CallSite site) const& { return detached(*this, site); }
Tensor Tensor::detach(CallSite site) && { return detached(std::move(*this), site); }

bool Tensor::requires_grad() const noexcept { return impl_ && (impl_->node || impl_->recorder); }

const Tensor& Tensor::grad() const {
  static const Tensor none;
  if (detail::Trace* const trace = detail::tape_mode().trace) return trace->gradient(*this);
  const Node* leaf = leaf_of(*this);
  return leaf ? leaf->extra->tensor : none;
}

void Tensor::zero_grad() const {
  if (detail::Trace* const trace = detail::tape_mode().trace)
    return trace->set_gradient(*this, Tensor());
  Node* leaf = leaf_of(*this);
  if (!leaf) return;
  leaf->extra->tensor = Tensor();
  leaf->extra->partial = false;
}

void Tensor::backward(BackwardOptions options, CallSite site) const {
  const detail::CallScope at(site);
  if (detail::Trace* const trace = detail::tape_mode().trace; trace && is_symbolic())
    return backward_traced(*trace, Tensor(*this), options, site);
  if (is_symbolic())
    detail::refuse("backward",
                   "a symbolic tensor has no tape; use gradients(), or an optimizer's minimize()");
  require_concrete(*this, "backward");
  if (!impl_->node) detail::refuse("backward", impl_->lost_history ? kFromCompiled : kNoHistory);
  const Tensor self = *this;  // a watch call may drop this handle
  const Tensor dy = one_like(self, "backward", site);
  detail::reverse_into_leaves({&self, 1}, {&dy, 1}, {options, site});
}

Tensors detail::gradients_for(const char* what, const Tensor& of, const Tensors& with_respect_to,
                              const BackwardOptions& options, const TakeGradient& take) {
  // A watch call may drop the caller's handles.
  const Tensor output = of;
  Tensors inputs = with_respect_to;
  const CallSite site = entry();
  if (!output.defined()) detail::refuse(what, "of a tensor that holds nothing");
  std::vector<Edge> targets;
  targets.reserve(inputs.size());
  for (Tensor& input : inputs) {
    if (!input.defined() || !input.impl()->node || !input.impl()->node->has_history)
      detail::refuse(what, "an input has no history: make it with_grad() before using it");
    if (Trace* const trace = tape_mode().trace) input = trace->symbolic(input, what, site);
    if (input.is_symbolic() != output.is_symbolic())
      detail::refuse(what,
                     "mixes concrete and symbolic tensors; in a graph, take them with respect to a "
                     "tensor of the graph");
    if (!(input.impl()->recorder == output.impl()->recorder))
      detail::refuse(what, "mixes tensors of two graphs");
    targets.push_back(edge_of(input));
  }
  if (!output.impl()->node) refuse_without_history(what);
  const Tensor dy = one_like(output, what, site);
  ReverseOptions how{options, site};
  std::vector<bool> is_taken(inputs.size(), false);
  if (take)
    how.take = [&](std::size_t i, Tensor gradient) {
      is_taken[i] = true;
      take(i, std::move(gradient));
    };
  Tensors result = reverse({&output, 1}, {&dy, 1}, targets, how);
  if (output.is_symbolic() && std::ranges::none_of(result, &Tensor::defined) &&
      std::ranges::find(is_taken, true) == is_taken.end() && !reaches_source(output))
    refuse_without_history(what);
  // Each result has memory of its own, so that an update of one leaves the others alone.
  std::unordered_set<std::uintptr_t> taken;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (is_taken[i]) continue;
    if (!result[i].defined()) result[i] = fill_like({inputs[i], site}, 0);
    if (take) {
      take(i, std::exchange(result[i], {}));
      continue;
    }
    const TensorImpl& impl = *result[i].impl();
    if (!taken.insert(memory_of(impl)).second) result[i] = copy({result[i], site});
  }
  return result;
}

Tensors gradients(const Tensor& output, const Tensors& inputs, BackwardOptions options,
                  CallSite site) {
  const detail::CallScope at(site);
  return detail::gradients_for("gradients", output, inputs, options);
}

Tensor gradient(const Tensor& output, const Tensor& input, BackwardOptions options, CallSite site) {
  const detail::CallScope at(site);
  return detail::gradients_for("gradient", output, {input}, options)[0];
}

}  // namespace ebb
