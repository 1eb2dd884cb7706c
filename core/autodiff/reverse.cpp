#include "ebb/core/autodiff/reverse.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ebb/core/autodiff/attempt.h"
#include "ebb/core/autodiff/gradient_contexts.h"
#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/tensor/lineage.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/core/tensor/trace.h"

namespace ebb::detail {

void refuse_lost_history(const char* what, CallSite site) {
  refuse(what,
         "an input was computed from a result of a compiled step, which has no history, so that "
         "its gradient would be lost; compute the loss inside the step, or detach() the result",
         site);
}

namespace {

// State of one node during the pass.
struct State {
  Tensors dys;                       // gradients of its outputs that have arrived
  std::vector<std::size_t> targets;  // indices of the targets among its outputs
  std::uint32_t consumers = 0;       // nodes on the way that have yet to pass their gradients on
  IndexSet wants;                    // inputs that lead to a target
  bool leads = false;                // to a target, or is a target
  bool is_target = false;
  bool visited = false;
};

// Destinations of the gradients of a node's inputs, one for each input.
using Sources = InlineVector<Node::Source, 4>;

class Reverse {
 public:
  Reverse(std::span<const Edge> targets, bool into_leaves, const ReverseOptions& options)
      : targets_(targets), into_leaves_(into_leaves), options_(options), results_(targets.size()) {}

  Tensors run(std::span<const Tensor> outputs, std::span<const Tensor> output_gradients) {
    if (Recorder* recorder = outputs[0].impl()->recorder.get())
      clones_ = std::make_unique<RegionClones>(Ref<Recorder>(recorder));
    std::vector<Edge> roots;
    for (const Tensor& output : outputs) roots.push_back(edge_of(output));
    discover(roots);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (roots[i].node) arrive(roots[i].node, roots[i].output, output_gradients[i]);
    TapeMode mode = tape_mode();
    mode.records = options_.create_graph;
    mode.no_grad = false;  // rules are as free as the lines that they differentiate
    mode.category = memory::Category::gradient;
    const TapeModeScope scope(mode);
    try {
      for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
        differentiate(**node);
        *node = nullptr;  // the record itself may go now
      }
    } catch (...) {
      undo_leaves();
      throw;
    }
    return std::move(results_);
  }

 private:
  bool frees_records() const noexcept {
    return !clones_ && !options_.retain_graph && !options_.create_graph;
  }

  bool is_border(const Node& node) const {
    return options_.stop_at_targets && states_.at(&node).is_target;
  }

  Sources sources_of(const Node& node) const {
    Sources sources;
    for (const Node::Source& source : node.inputs)
      sources.push_back(clones_ ? gradient_source(source) : source);
    return sources;
  }

  // Finds all nodes below the outputs, inputs before what uses them, and which of them lead to a
  // target.
  void discover(std::span<const Edge> roots) {
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      State& state = states_[targets_[i].node];
      state.is_target = true;
      state.targets.push_back(i);
    }
    std::vector<Ref<Node>> open;
    const auto visit = [&](const Ref<Node>& node) {
      if (node && !std::exchange(states_[node.get()].visited, true)) open.push_back(node);
    };
    for (const Edge& root : roots) visit(Ref<Node>(root.node));
    while (!open.empty()) {
      Ref<Node> node = std::move(open.back());
      open.pop_back();
      if (node->released)
        refuse("backward",
               "the tape below this tensor was freed by an earlier backward pass; pass "
               "{.retain_graph = true} to that one to keep it",
               options_.site);
      State& state = states_[node.get()];
      if (into_leaves_ && node->op == &leaf_op) state.is_target = true;
      if (!is_border(*node)) {
        const Sources sources = sources_of(*node);
        for (std::size_t i = 0; i < sources.size(); ++i) {
          visit(sources[i].producer);
          const Node::Source& input = node->inputs[i];
          if (!clones_ || (sources[i].producer && !updates_constant(input))) continue;
          // All that it may come from: its producer, and all updates of its memory.
          visit(input.producer);
          for (Node* update : updates_of(root_of(input)).first(input.version))
            visit(Ref<Node>(update));
        }
      }
      order_.push_back(std::move(node));
    }
    std::ranges::sort(order_, [](const auto& a, const auto& b) { return a->number < b->number; });
    for (const Ref<Node>& node : order_) {
      State& state = states_[node.get()];
      state.leads = state.is_target;
      if (is_border(*node)) continue;
      const Sources sources = sources_of(*node);
      for (std::size_t i = 0; i < sources.size(); ++i) {
        if (!carries_gradient(*node, i)) continue;
        const Node::Source& source = sources[i];
        if (!source.producer) {
          require_history(node->inputs[i], *node);
          continue;
        }
        if (clones_ && updates_constant(node->inputs[i])) require_constant(node->inputs[i], *node);
        State& below = states_[source.producer.get()];
        if (!below.leads) continue;
        state.leads = true;
        state.wants.insert(i);
        ++below.consumers;
      }
    }
  }

  // Whether the source reads a captured constant that the graph has updated.
  static bool updates_constant(const Node::Source& source) {
    return source.version > 0 && is_captured_constant(source) &&
           !is_detached(source.producer.get());
  }

  // Whether a gradient flows to the new values of an update, rather than to its target.
  bool value_leads(const Node& update) {
    for (std::size_t i = 0; i < update.inputs.size(); ++i) {
      if (update.op->updates.has(i) || !carries_gradient(update, i)) continue;
      const Node* producer = gradient_source(update.inputs[i]).producer.get();
      if (producer && states_[producer].leads) return true;
    }
    return false;
  }

  // Throws if a gradient would flow into one of these updates.
  void require_constant(const Node::Source& source, const Node& reader) {
    for (const Node* update : updates_of(root_of(source)).first(source.version))
      if (value_leads(*update))
        refuse(reader.op->name,
               "a tensor that the graph has captured, a " +
                   source.producer->outputs[source.output].to_string() +
                   ", has been updated with what a gradient is taken of, which would be lost: what "
                   "is captured keeps its values from run to run; begin with fill_like() of a "
                   "tensor of the graph, or detach() the value",
               update->site);
  }

  static bool is_detached(const Node* node) {
    while (node->op->view && !node->op->stops_gradient.has(0))
      node = node->inputs[0].producer.get();
    return node->op->view;
  }

  // Throws if a gradient would be lost at an input without a history. A detached tensor loses only
  // gradients of values that it was itself updated with.
  void require_history(const Node::Source& source, const Node& reader) {
    const Root target = target_of(source);
    const bool detached = is_detached(target.node);
    bool leads = states_[source.producer.get()].leads;
    for (const Node* update : updates_of(root_of(source)).first(source.version))
      leads =
          leads || (states_[update].leads && (!detached || target_of(update->inputs[0]) == target));
    if (leads)
      refuse(reader.op->name, updated_through_another_view(source.producer->outputs[source.output]),
             reader.site);
  }

  void arrive(Node* node, std::uint32_t output, Tensor dy) {
    Tensors& dys = states_[node].dys;
    if (dys.size() <= output) dys.resize(output + 1);
    Tensor& sum = dys[output];
    const CallSiteScope at(entry().in(node->site.layer));
    sum = sum.defined() ? std::move(sum) + std::move(dy) : std::move(dy);
  }

  void differentiate(Node& node) {
    State& state = states_[&node];
    if (!state.leads) return;
    if (state.is_target) {
      if (node.op == &leaf_op && into_leaves_) {
        if (state.consumers == 0) settle_leaf(node);
        return;
      }
      for (const std::size_t i : state.targets)
        if (targets_[i].output < state.dys.size()) results_[i] = state.dys[targets_[i].output];
    }
    if (state.wants.empty() || is_border(node)) {
      state.dys.clear();
      return;
    }
    const bool arrived = std::ranges::any_of(state.dys, &Tensor::defined);
    Tensors dxs = arrived ? differentiate(node, state) : Tensors(node.inputs.size());
    state.dys.clear();
    if (arrived) check_gradients(node, state, dxs);

    // The sources, before the record drops its references.
    const Sources sources = sources_of(node);
    if (frees_records()) record_of(node).drop();
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (!state.wants.has(i)) continue;
      Node* producer = sources[i].producer.get();
      if (dxs[i].defined()) arrive(producer, sources[i].output, std::move(dxs[i]));
      if (--states_[producer].consumers > 0) continue;
      if (into_leaves_ && producer->op == &leaf_op) settle_leaf(*producer);
      if (options_.take && states_[producer].wants.empty()) hand_over(states_[producer]);
    }
  }

  // Checks the result of a gradient rule: a user's rule may return anything.
  void check_gradients(const Node& node, const State& state, const Tensors& dxs) const {
    if (dxs.size() != node.inputs.size())
      refuse(node.op->name,
             "its gradient rule gives " + std::to_string(dxs.size()) + " gradients for " +
                 std::to_string(node.inputs.size()) + " inputs",
             node.site);
    for (std::size_t i = 0; i < dxs.size(); ++i) {
      if (!dxs[i].defined() || !state.wants.has(i)) continue;
      const Spec& got = dxs[i].impl()->spec;
      const Spec& input = clones_ ? node.inputs[i].producer->outputs[node.inputs[i].output]
                                  : record_of(node).kept_inputs[i].spec;
      if (got.dtype == input.dtype && may_equal(got.shape, input.shape)) continue;
      refuse(node.op->name,
             "its gradient rule gives " + got.to_string() + " for input " + std::to_string(i) +
                 ", which is " + input.to_string(),
             node.site);
    }
  }

  // Gives the gradients of a target that leads to no other away.
  void hand_over(State& state) {
    for (const std::size_t i : state.targets) {
      if (targets_[i].output >= state.dys.size() || !state.dys[targets_[i].output].defined())
        continue;
      const bool is_last = i == state.targets.back();
      Tensor& dy = state.dys[targets_[i].output];
      options_.take(i, is_last ? std::move(dy) : dy);
    }
    if (!state.targets.empty()) state.dys.clear();
  }

  Tensors differentiate(Node& node, State& state) {
    state.dys.resize(node.outputs.size());
    const std::span<Tensor> dys(state.dys.data(), state.dys.size());
    const CallSiteScope at(node.site, CallSiteScope::innermost);
    if (clones_) return differentiate(node, GraphGradient(node, dys, state.wants, *clones_));
    return differentiate(node, TapeGradient(record_of(node), dys, state.wants, frees_records()));
  }

  Tensors differentiate(Node& node, const GradientContext& context) {
    if (node.op->gradient) try {
        return node.op->gradient(context);
      } catch (const NotANumber& error) {
        throw NotANumber(std::string(error.what()) + ", in the gradient of " + node.op->name);
      }
    if (node.op->compose) return through_composed(node, context);
    refuse<NotDifferentiable>(node.op->name, "has no derivative", node.site);
  }

  // Differentiates a fused operator through its composed form, with this node's inputs as border.
  Tensors through_composed(Node& node, const GradientContext& context) {
    Tensors inputs;
    std::vector<Edge> edges;
    for (int i = 0; i < context.inputs(); ++i) {
      inputs.push_back(context.x(i));
      const Edge edge = edge_of(inputs.back());
      const bool is_new = std::find(edges.begin(), edges.end(), edge) == edges.end();
      edges.push_back(context.wants(i) && is_new ? edge : Edge{});
    }
    IndexSet unwanted;
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (!context.dy(static_cast<int>(i)).defined()) unwanted.insert(i);
    Tensors outputs;
    {
      const TapeModeScope scope;
      tape_mode().records = true;
      outputs = node.op->compose({inputs.data(), inputs.size()}, node.attributes, unwanted);
    }
    Tensors roots, dys;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].defined() || !context.dy(static_cast<int>(i)).defined()) continue;
      roots.push_back(outputs[i]);
      dys.push_back(context.dy(static_cast<int>(i)));
    }
    std::vector<Edge> targets;
    for (const Edge& edge : edges)
      if (edge.node) targets.push_back(edge);
    ReverseOptions options = options_;
    options.stop_at_targets = true;
    options.take = {};  // these targets are the node's inputs
    outputs.clear();
    Tensors found =
        reverse({roots.data(), roots.size()}, {dys.data(), dys.size()}, targets, options);
    Tensors result(inputs.size());
    for (std::size_t i = 0, next = 0; i < edges.size(); ++i)
      if (edges[i].node) result[i] = std::move(found[next++]);
    return result;
  }

  // After a failure: gradients that this pass made go, gradients that it added to are marked.
  void undo_leaves() noexcept {
    for (const auto& [leaf, made] : settled_)
      if (made)
        leaf->extra->tensor = Tensor();
      else
        leaf->extra->partial = true;
  }

  // Adds the gradient that has arrived to the leaf's. The first becomes the leaf's itself, unless
  // its memory is shared.
  void settle_leaf(Node& leaf) {
    Tensors& dys = states_[&leaf].dys;
    Tensor dy = dys.empty() ? Tensor() : std::move(dys[0]);
    dys.clear();
    if (leaf.extra->unreachable) return;
    Tensor& grad = leaf.extra->tensor;
    const CallSite site = options_.site.in(leaf.site.layer);
    const bool made = !grad.defined();
    Tensor next;
    if (!dy.defined()) {  // ended on the way, as in round(): the gradient is 0
      if (!made) return;
      const Spec& spec = leaf.outputs[0];
      next = Tensor::zeros(spec.shape, spec.dtype, *leaf.extra->device, site);
    } else if (made) {
      const TensorImpl& impl = *dy.impl();
      const bool own =
          impl.unique() && impl.storage->unique() && impl.storage->bytes() == impl.spec.bytes();
      next = own ? std::move(dy) : copy({dy, site});
    } else if (options_.create_graph || grad.requires_grad()) {
      next = grad + dy;  // results made of the old gradient keep its value
    }
    settled_.push_back({Ref<Node>(&leaf), made});
    Attempt::note_gradient(settled_.back().leaf, made);
    if (next.defined())
      grad = std::move(next);
    else
      add_assign(grad, dy);
  }

  struct Settled {
    Ref<Node> leaf;
    bool made;  // there was no gradient before
  };

  const std::span<const Edge> targets_;
  const bool into_leaves_;
  const ReverseOptions options_;
  Tensors results_;
  std::unique_ptr<RegionClones> clones_;  // set: this is a graph
  std::unordered_map<const Node*, State> states_;
  std::vector<Ref<Node>> order_;
  std::vector<Settled> settled_;  // leaves that this pass has added to
};

}  // namespace

Edge edge_of(const Tensor& tensor) {
  const TensorImpl& impl = *tensor.impl();
  if (!impl.recorder) return {impl.node.get(), impl.output};
  const Node::Source source = source_of(tensor);
  const Node::Source flows = gradient_source(source);
  const Node::Source& edge = flows.producer ? flows : source;
  return {edge.producer.get(), edge.output};
}

std::unordered_set<const Node*> nodes_below(const Tensor& tensor) {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> open;
  const auto visit = [&](const Node* node) {
    if (node && seen.insert(node).second) open.push_back(node);
  };
  visit(edge_of(tensor).node);
  const bool symbolic = tensor.is_symbolic();
  while (!open.empty()) {
    const Node& node = *open.back();
    open.pop_back();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!carries_gradient(node, i)) continue;
      const Node::Source& source = node.inputs[i];
      if (!symbolic) {
        visit(source.producer.get());
        continue;
      }
      // With an update through another view in between, both producer and updates may be on the
      // way; reverse mode decides.
      const Node::Source flows = gradient_source(source);
      visit(flows.producer ? flows.producer.get() : source.producer.get());
      if (!flows.producer)
        for (const Node* update : updates_of(root_of(source)).first(source.version)) visit(update);
    }
  }
  return seen;
}

Tensors reverse(std::span<const Tensor> outputs, std::span<const Tensor> output_gradients,
                std::span<const Edge> targets, const ReverseOptions& options) {
  if (outputs.empty()) return Tensors(targets.size());
  return Reverse(targets, false, options).run(outputs, output_gradients);
}

void reverse_into_leaves(std::span<const Tensor> outputs, std::span<const Tensor> output_gradients,
                         const ReverseOptions& options) {
  Reverse({}, true, options).run(outputs, output_gradients);
}

bool has_partial_gradient(const Tensor& tensor) {
  const Node* node = tensor.impl()->node.get();
  if (Trace* const trace = tape_mode().trace)
    if (const Trace::Leaf* leaf = trace->find_leaf(tensor); leaf && leaf->is_changed) return false;
  return node && node->op == &leaf_op && node->extra->partial;
}

}  // namespace ebb::detail
