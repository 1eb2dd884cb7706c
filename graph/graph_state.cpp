#include "ebb/graph/graph_state.h"

#include <thread>

#include "ebb/core/autodiff/recompute.h"
#include "ebb/core/base/error.h"
#include "ebb/core/kernels/random.h"
#include "ebb/core/ops/collective.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/parameters/shared_parameter.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/trace.h"

namespace ebb {

using detail::make_ref;
using detail::Ref;
using detail::refuse;
using detail::TensorImpl;

constinit const OpDef placeholder_op = {.name = "placeholder", .infer = nullptr, .is_source = true};
constinit const OpDef variable_op = {.name = "variable", .infer = nullptr, .is_source = true};
constinit const OpDef captured_op = {.name = "captured", .infer = nullptr, .is_source = true};

std::string detail::described(const Node& placeholder) {
  return "placeholder '" + placeholder.extra->name + "'" + at(placeholder.site);
}

void detail::require_placeholder(const char* what, const GraphState& graph, const Tensor& fed,
                                 std::size_t i, std::size_t feeds) {
  const bool is_symbolic = fed.defined() && fed.is_symbolic();
  const bool is_placeholder = is_symbolic && fed.impl()->node->op == &placeholder_op;
  if (is_placeholder && graph.owns(fed)) return;
  std::string text = fed.to_string();
  if (is_placeholder)
    text = described(*fed.impl()->node) + " of another graph";
  else if (is_symbolic && fed.impl()->node->op == &variable_op)
    text = "parameter '" + fed.impl()->node->extra->name + "'" + at(fed.impl()->node->site) +
           ", which Session::assign sets";
  else if (is_symbolic)
    text += ", a result of " + std::string(fed.impl()->node->op->name) + at(fed.impl()->node->site);
  refuse(what, "only placeholders of this graph can be fed; feed " + std::to_string(i + 1) +
                   " of " + std::to_string(feeds) + " is for " + text);
}

GraphState::~GraphState() {
  // Last node first, so that destroying a node never recurses down a chain.
  random_state_node_ = nullptr;
  while (!nodes_.empty()) nodes_.pop_back();
}

// Excludes readers and other writers, and throws instead of waiting.
class GraphState::Extending : NoCopy {
 public:
  Extending(GraphState& graph, const char* what, CallSite site) : graph_(graph) {
    int nobody = 0;
    if (!graph.users_.compare_exchange_strong(nobody, -1, std::memory_order_acquire))
      refuse(what,
             nobody > 0 ? "a graph cannot be extended while a session runs it"
                        : "a graph cannot be extended by two threads at once",
             site);
  }
  ~Extending() { graph_.users_.store(0, std::memory_order_release); }

 private:
  GraphState& graph_;
};

GraphState::Reading::Reading(const GraphState& graph) noexcept : graph_(graph) {
  int users = 0;
  while (!graph.users_.compare_exchange_weak(users, users + 1, std::memory_order_acquire))
    for (; users < 0; users = graph.users_.load(std::memory_order_relaxed))
      std::this_thread::yield();
}

Ref<Node> GraphState::new_node(const OpDef& op, const Attributes& attributes, CallSite site) const {
  return make_ref<Node>(op, attributes, site, nodes_.size());
}

Tensor GraphState::add_input(const OpDef& op, const Spec& spec, std::string_view name,
                             const Attributes& attributes, CallSite site) {
  Ref<Node> node = new_node(op, attributes, site);
  node->outputs.push_back(spec);
  node->make_extra().name = name;
  nodes_.push_back(node);
  return detail::make_symbolic(spec, Ref<Recorder>(this), std::move(node), 0);
}

Tensor GraphState::placeholder(std::string_view name, const Spec& spec, CallSite site) {
  if (name.empty()) refuse("placeholder", "needs a name", site);
  if (!spec.shape.is_countable())
    refuse<ShapeError>("placeholder", detail::too_large(spec.shape), site);
  const Extending extending(*this, "placeholder", site);
  const auto at = placeholders_.find(std::string(name));
  if (at != placeholders_.end())
    refuse("placeholder",
           "the name '" + std::string(name) + "' is taken by the placeholder at " +
               at->second->site.file + ":" + std::to_string(at->second->site.line),
           site);
  Tensor tensor = add_input(placeholder_op, spec, name, {}, site);
  placeholders_.emplace(name, tensor.impl()->node.get());
  return tensor;
}

Tensor GraphState::declare(const VariableDeclaration& declaration) {
  const Extending extending(*this, "declare", declaration.site);
  const auto index = static_cast<std::int64_t>(variables_.size());
  variables_.push_back(declaration);
  return add_input(variable_op, declaration.spec, declaration.name, VariableAttributes{index},
                   declaration.site);
}

Tensor GraphState::draw(CallSite site) {
  const Spec spec{DType::i64, {2}};
  if (draws_.defined()) {
    // Of a compiled call: the thread's generator goes on as the lines of the function would have
    // it.
    detail::Generator& generator = detail::generator();
    if (generator.key != first_draw_.key)
      refuse("draw",
             "set_seed() within a compiled step would restart the draws only where it is traced; "
             "call it outside",
             site);
    const auto number = static_cast<std::int64_t>(generator.counter++ - first_draw_.counter);
    return reshape({slice({draws_, site}, number, number + 1), site}, spec.shape);
  }
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
  // As many as without shares: draws are the same.
  const auto number = static_cast<std::int64_t>(nodes_.size()) - views_of_shares_;
  return apply_one(draw_op, {state}, DrawAttributes{number}, site);
}

Tensor GraphState::capture(const Tensor& concrete, const char* what, CallSite site) {
  const Extending extending(*this, what, site);
  const Node::Source source = captured_source(concrete, what, site);
  return detail::make_symbolic(source.producer->outputs[0], Ref<Recorder>(this), source.producer,
                               0);
}

Tensor GraphState::constant(const Tensor& concrete, const char* what, CallSite site) {
  return capture(concrete, what, site).clone(site);
}

Node::Source GraphState::captured_source(const Tensor& tensor, const char* what, CallSite site) {
  const TensorImpl& impl = *tensor.impl();
  if (!impl.storage) refuse(what, "an input has no values to be captured", site);
  if (detail::Trace* const trace = detail::tape_mode().trace)
    trace->require_device(impl.storage->device(), what, site);
  if (impl.lost_history && detail::tape_mode().records) detail::refuse_lost_history(what, site);
  if (impl.node && !impl.node->op->is_source)
    refuse(what,
           "a concrete result of " + std::string(impl.node->op->name) +
               " with a history would freeze if this graph captured it; detach() it, or compute it "
               "inside the graph",
           site);
  if (impl.storage->in_shares()) return captured_shares(tensor, what, site);
  const auto found = captured_.find(&impl);
  Node* known = found == captured_.end() ? nullptr : found->second;
  if (!known) {
    Ref<Node> node = new_node(captured_op, Attributes(), site.in(detail::layer_of(impl)));
    node->outputs.push_back(impl.spec);
    node->make_extra().tensor = tensor;
    known = node.get();
    nodes_.push_back(std::move(node));  // before anything refers to it
    // Captured tensors that share memory are views of the first of them.
    const auto [first, is_first] = captured_storage_.emplace(impl.storage.get(), known);
    if (!is_first) known->root = first->second;
    captured_.emplace(&impl, known);
  }
  Node::Source source{Ref<Node>(known), 0, 0};
  source.version = detail::newest_version(detail::root_of(source));
  return source;
}

// A view of the share, which a program gathers.
Node::Source GraphState::captured_shares(const Tensor& tensor, const char* what, CallSite site) {
  const TensorImpl& impl = *tensor.impl();
  const auto& shares = static_cast<const detail::SharedParameter&>(*impl.storage->in_shares());
  if (!(impl.spec == shares.spec()))
    refuse(what, "a part of a parameter of which ranks have shares cannot be captured", site);
  Node*& known = captured_shares_[impl.storage.get()];
  if (!known) {
    const Node::Source share = captured_source(shares.share_tensor(), what, site);
    Ref<Node> node = new_node(whole_op, shares.attributes(), site.in(impl.storage->layer()));
    node->outputs.push_back(impl.spec);
    node->inputs.push_back(share);
    node->root = detail::root_of(share).node;
    node->make_extra().tensor = tensor;  // so that nothing else is at its address
    known = node.get();
    nodes_.push_back(std::move(node));
  }
  Node::Source source{Ref<Node>(known), 0, 0};
  source.version = detail::newest_version(detail::root_of(source));
  return source;
}

Tensors GraphState::record(const OpDef& op, Inputs inputs, const Attributes& attributes,
                           CallSite site) {
  if (detail::EdgeCollector* const collector = detail::tape_mode().collector)
    collector->enter(*this, site);
  const Extending extending(*this, op.name, site);
  Specs in;
  for (const Input& input : inputs) {
    const TensorImpl& impl = *input.tensor->impl();
    if (impl.recorder && impl.recorder.get() != this)
      refuse(op.name, "inputs are tensors of two graphs", site);
    in.push_back(impl.spec);
  }
  Specs out;
  detail::require_shape_rule(op, site);
  Inference inference{op, {in.data(), in.size()}, attributes, site, out};
  try {
    op.infer(inference);
  } catch (...) {
    // Its draws are the last nodes. Later ones get the numbers that they would have had without it.
    while (!nodes_.empty() && nodes_.back()->op == &draw_op) nodes_.pop_back();
    throw;
  }

  // Capture inputs first: a captured tensor's node precedes its readers.
  InlineVector<Node::Source, 3> sources;
  for (const Input& input : inputs)
    sources.push_back(input.tensor->is_symbolic() ? detail::source_of(*input.tensor)
                                                  : captured_source(*input.tensor, op.name, site));
  Attributes told = attributes;
  if (&op == &dropout_op && sources[1].producer->op == &draw_op) {
    // Its kernel makes the draw itself: one launch less.
    const Ref<Node> draw = sources[1].producer;
    auto random = told.get<RandomAttributes>();
    random.draw = draw->attributes.get<DrawAttributes>();
    told = random;
    sources[1] = draw->inputs[0];
  }
  const bool pinned = op.view && inputs[0].tensor->impl()->version != TensorImpl::kNewest &&
                      inputs[0].tensor->is_symbolic();

  Ref<Node> node = new_node(op, told, site);
  node->category = detail::tape_mode().category;
  node->region = region_;
  node->has_history = detail::tape_mode().records;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!op.updates.has(i)) continue;
    const detail::Root root = detail::root_of(sources[i]);
    if (root.node->op == &placeholder_op)
      refuse(op.name,
             "the placeholder '" + root.node->extra->name +
                 "' belongs to who feeds it and cannot be updated in place; copy() it",
             site);
    if (root.node->op == &captured_op)
      detail::require_writable(*root.node->extra->tensor.impl()->storage, op.name, site);
    sources[i].version = detail::newest_version(root);  // the update makes the next version
  }
  if (op.view || !op.updates.empty()) {
    const detail::Root root = detail::root_of(sources[0]);
    node->root = root.node;
    node->root_output = root.output;
  }
  if (!op.updates.empty()) {
    const detail::Root target = detail::target_of(sources[0]);
    node->target = target.node;
    node->target_output = target.output;
  }
  Tensors results;
  for (std::size_t i = 0; i < out.size(); ++i) {
    node->outputs.push_back(out[i]);
    results.push_back(
        detail::make_symbolic(out[i], Ref<Recorder>(this), node, static_cast<std::uint32_t>(i)));
  }
  if (pinned) results[0].impl()->version = sources[0].version;

  nodes_.push_back(node);
  if (&op == &whole_op) ++views_of_shares_;
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (op.updates.has(i)) add_update(detail::root_of(sources[i]), *node);
  node->inputs = std::move(sources);
  return results;
}

// Appends the root's next version, once for each update.
void GraphState::add_update(const detail::Root& root, Node& node) {
  auto& updates = root.node->make_extra().updates;
  if (updates.size() <= root.output) updates.resize(root.output + 1);
  if (updates[root.output].empty() || updates[root.output].back() != &node)
    updates[root.output].push_back(&node);
}

}  // namespace ebb
