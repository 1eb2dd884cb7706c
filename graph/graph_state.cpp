#include "ebb/graph/graph_state.h"

#include "ebb/core/error.h"
#include "ebb/core/kernels/random.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/tape_mode.h"

namespace ebb {

using detail::make_ref;
using detail::message;
using detail::Ref;
using detail::TensorImpl;

const OpDef placeholder_op = {.name = "placeholder", .infer = nullptr};
const OpDef variable_op = {.name = "variable", .infer = nullptr};
const OpDef captured_op = {.name = "captured", .infer = nullptr};

GraphState::~GraphState() {
  // From the last node to the first, so that no node's end reaches down a chain.
  captured_.clear();
  random_state_node_ = nullptr;
  while (!nodes_.empty()) nodes_.pop_back();
}

Node& GraphState::add(Ref<Node> node) {
  if (runs_.load(std::memory_order_relaxed) > 0)
    throw Error(
        message(node->op->name, "a graph cannot be extended while a session runs it", node->site));
  positions_.emplace(node.get(), nodes_.size());
  nodes_.push_back(std::move(node));
  return *nodes_.back();
}

Tensor GraphState::add_input(const OpDef& op, const Spec& spec, std::string_view name,
                             const Attributes& attributes, CallSite site) {
  Ref<Node> node = make_ref<Node>(op, attributes, site);
  node->outputs.emplace_back().spec = spec;
  node->extra = std::make_unique<Node::Extra>();
  node->extra->name = name;
  add(node);
  return detail::make_symbolic(spec, Ref<Recorder>(this), std::move(node), 0);
}

Tensor GraphState::placeholder(std::string_view name, const Spec& spec, CallSite site) {
  if (name.empty()) throw Error(message("placeholder", "needs a name", site));
  if (!spec.shape.is_countable())
    throw ShapeError(message("placeholder", detail::too_large(spec.shape), site));
  for (const Ref<Node>& node : nodes_)
    if (node->op == &placeholder_op && node->extra->name == name)
      throw Error(message("placeholder",
                          "the name '" + std::string(name) + "' is taken by the placeholder at " +
                              node->site.file + ":" + std::to_string(node->site.line),
                          site));
  return add_input(placeholder_op, spec, name, {}, site);
}

std::int64_t GraphState::find_variable(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < variables_.size(); ++i)
    if (variables_[i].name == name) return static_cast<std::int64_t>(i);
  return -1;
}

Tensor GraphState::declare(const VariableDeclaration& declaration) {
  if (find_variable(declaration.name) >= 0)
    throw Error(message("declare", "the name '" + declaration.name + "' is used twice in the graph",
                        declaration.site));
  const VariableAttributes attributes{static_cast<std::int64_t>(variables_.size())};
  Tensor tensor =
      add_input(variable_op, declaration.spec, declaration.name, attributes, declaration.site);
  variables_.push_back(declaration);
  return tensor;
}

Tensor GraphState::draw(CallSite site) {
  const Spec spec{DType::i64, {2}};
  if (random_state_ < 0) {
    const auto index = static_cast<std::int64_t>(variables_.size());
    const Tensor variable = declare({.name = "random/state",
                                     .spec = spec,
                                     .initializer = initializers::zeros(),
                                     .seed = {},
                                     .category = memory::Category::optimizer_state,
                                     .site = site});
    random_state_ = index;
    random_state_node_ = variable.impl()->node;
  }
  const Tensor state = detail::make_symbolic(spec, Ref<Recorder>(this), random_state_node_, 0);
  return apply_one(draw_op, {state}, DrawAttributes{nodes_.size()}, site);
}

Ref<Node> GraphState::capture(const Tensor& tensor, const OpDef& user, CallSite site) {
  const TensorImpl& impl = *tensor.impl();
  if (!impl.storage) throw Error(message(user.name, "an input has no values to be captured", site));
  if (impl.node && impl.node->op != &leaf_op)
    throw Error(message(user.name,
                        "a concrete result of " + std::string(impl.node->op->name) +
                            " with a history would freeze if this graph captured it; detach() it, "
                            "or compute it inside the graph",
                        site));
  Ref<Node>& node = captured_[&impl];
  if (!node) {
    Ref<Node> made = make_ref<Node>(captured_op, Attributes(), site);
    made->outputs.emplace_back().spec = impl.spec;
    made->extra = std::make_unique<Node::Extra>();
    made->extra->tensor = tensor;
    add(made);
    node = std::move(made);
  }
  return node;
}

Tensors GraphState::record(const OpDef& op, Inputs inputs, const Attributes& attributes,
                           CallSite site) {
  Specs in;
  for (const Input& input : inputs) {
    if (!input.tensor->defined())
      throw Error(message(op.name, "an input is a tensor that holds nothing", site));
    const TensorImpl& impl = *input.tensor->impl();
    if (impl.recorder && impl.recorder.get() != this)
      throw Error(message(op.name, "inputs are tensors of two graphs", site));
    in.push_back(impl.spec);
  }
  Specs out;
  Inference inference{op, {in.data(), in.size()}, attributes, site, out};
  op.infer(inference);

  Ref<Node> node = make_ref<Node>(op, attributes, site);
  for (const Input& input : inputs) {
    const TensorImpl& impl = *input.tensor->impl();
    const bool symbolic = static_cast<bool>(impl.recorder);
    Node::Source& source = node->inputs.emplace_back();
    source.spec = impl.spec;
    source.producer = symbolic ? impl.node : capture(*input.tensor, op, site);
    source.output = symbolic ? impl.output : 0;
  }
  node->category = detail::tape_mode().category;
  node->region = region_;
  Tensors results;
  for (std::size_t i = 0; i < out.size(); ++i) {
    node->outputs.emplace_back().spec = out[i];
    results.push_back(
        detail::make_symbolic(out[i], Ref<Recorder>(this), node, static_cast<std::uint32_t>(i)));
  }
  add(std::move(node));
  return results;
}

}  // namespace ebb
