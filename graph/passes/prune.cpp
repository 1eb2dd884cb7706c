#include "ebb/core/base/error.h"
#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

// Goes through the program from its end. When a node's turn comes, all its readers have had theirs,
// so it is known whether it runs and which of its outputs are read.
class Pruner {
 public:
  Pruner(Draft& draft, const GraphState& graph) : draft_(draft), graph_(graph) {
    draft_.of_position.assign(graph_.nodes().size(), kNone);
  }

  void run(std::span<Node* const> effects) {
    for (Node* const effect : effects) reach(*effect).runs = true;
    for (const DraftFetch& fetch : draft_.fetches) {
      DraftNode& fetched = reach(*fetch.source.producer);
      fetched.runs = true;
      fetched.read.insert(fetch.source.output);
      if (Node* update = needed_update(root_of(fetch.source), fetch.source.version))
        reach(*update).runs = true;
    }
    for (std::size_t number = graph_.nodes().size(); number-- > 0;)
      if (draft_.of_position[number] != kNone) reach_below(draft_.of_position[number]);
    std::vector<DraftNode> in_order;
    in_order.reserve(draft_.nodes.size());
    for (const Index n : draft_.of_position)
      if (n != kNone) in_order.push_back(std::move(draft_.nodes[n]));
    draft_.nodes = std::move(in_order);
    Index outputs = 0;
    for (Index n = 0; n < draft_.nodes.size(); ++n) {
      DraftNode& item = draft_.nodes[n];
      draft_.of_position[item.node->number] = n;
      item.first_output = outputs;
      outputs += static_cast<Index>(item.node->outputs.size());
    }
    draft_.specs.reserve(outputs);
  }

 private:
  DraftNode& reach(Node& node) {
    Index& at = draft_.of_position[node.number];
    if (at == kNone) {
      at = static_cast<Index>(draft_.nodes.size());
      draft_.nodes.push_back({.node = &node});
    }
    return draft_.nodes[at];
  }

  void reach_below(Index n) {
    const Node& node = *draft_.nodes[n].node;
    const bool runs = draft_.nodes[n].runs;
    if (node.op->is_source) {
      // `root`: the first captured tensor of the same memory.
      if (node.root) reach(*node.root).runs |= runs;
      return;
    }
    const IndexSet unwanted = unwanted_outputs(draft_.nodes[n]);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Node::Source& source = node.inputs[i];
      DraftNode& below = reach(*source.producer);
      if (!runs) continue;  // its inputs are needed for their shape only
      const bool only_shape = needs_only_shape(*node.op, i, unwanted);
      // with_updates and similar operators order themselves after inputs whose values they do not
      // read.
      if (!only_shape || node.op->stateful) below.runs = true;
      if (only_shape) continue;
      below.read.insert(source.output);
      if (Node* update = needed_update(root_of(source), source.version)) reach(*update).runs = true;
    }
  }

  Draft& draft_;
  const GraphState& graph_;
};

}  // namespace

Draft prune(const GraphState& graph, const Runtime& runtime, const Tensors& fetches,
            const char* what, std::span<Node* const> effects) {
  if (fetches.empty() && effects.empty()) refuse(what, "nothing to fetch");
  Draft draft;
  draft.what = what;
  draft.graph = &graph;
  draft.runtime = &runtime;
  for (const Tensor& fetch : fetches) {
    if (!graph.owns(fetch))
      refuse(what, "a fetch is not a tensor of this graph: " + fetch.to_string());
    draft.fetches.push_back({.source = source_of(fetch)});
  }
  Pruner(draft, graph).run(effects);
  return draft;
}

}  // namespace ebb::detail
