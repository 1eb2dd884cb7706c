#include "ebb/core/base/error.h"
#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

// Calls use(node, input) for every node that `node` needs; input is -1 where it is needed as a
// whole, not for what an input reads.
template <class Use>
void for_each_need(const Node& node, Use use) {
  if (node.op->is_source) {
    if (node.root) use(*node.root, -1);  // the first captured tensor of the same memory
    return;
  }
  const Mask shape_only = shape_only_inputs(*node.op, node.attributes);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Node::Source& source = node.inputs[i];
    use(*source.producer, static_cast<int>(i));
    if (shape_only & bit(static_cast<int>(i))) continue;
    if (Node* update = needed_update(root_of(source), source.version)) use(*update, -1);
  }
}

}  // namespace

Form prune(const GraphState& graph, const Runtime& runtime, const Tensors& fetches) {
  if (fetches.empty()) throw Error("[run] nothing to fetch");
  Form form;
  form.graph = &graph;
  form.runtime = &runtime;
  for (const Tensor& fetch : fetches) {
    if (!graph.owns(fetch))
      throw Error("[run] a fetch is not a tensor of this graph: " + fetch.to_string());
    form.fetches.push_back(
        {.source = source_of(fetch), .pinned = fetch.impl()->version != TensorImpl::kNewest});
  }

  // Everything that can be reached.
  std::vector<Node*> open;
  form.of_position.assign(graph.nodes().size(), kNone);
  const auto reach = [&](Node& node) {
    if (form.of_position[node.number] != kNone) return;
    form.of_position[node.number] = 0;
    open.push_back(&node);
  };
  std::vector<Node*> roots;  // of the fetches
  for (const FormFetch& fetch : form.fetches) {
    roots.push_back(fetch.source.producer.get());
    if (Node* update = needed_update(root_of(fetch.source), fetch.source.version))
      roots.push_back(update);
  }
  for (Node* root : roots) reach(*root);
  std::size_t reached = 0;
  while (!open.empty()) {
    const Node& node = *open.back();
    open.pop_back();
    ++reached;
    for_each_need(node, [&](Node& needed, int) { reach(needed); });
  }
  // What is needed comes before what needs it.
  form.nodes.reserve(reached);
  Index outputs = 0;
  for (std::size_t number = 0; number < form.of_position.size(); ++number) {
    if (form.of_position[number] == kNone) continue;
    Node& node = *graph.nodes()[number];
    form.of_position[number] = static_cast<Index>(form.nodes.size());
    form.nodes.push_back({.node = &node, .first_output = outputs});
    outputs += static_cast<Index>(node.outputs.size());
  }
  form.specs.reserve(outputs);

  // From the end: which of them run, and which of their outputs somebody reads.
  for (Node* root : roots) form.nodes[form.index_of(*root)].runs = true;
  for (const FormFetch& fetch : form.fetches)
    form.nodes[form.index_of(*fetch.source.producer)].wanted |=
        bit(static_cast<int>(fetch.source.output));
  for (std::size_t n = form.nodes.size(); n-- > 0;) {
    if (!form.nodes[n].runs) continue;
    const Node& node = *form.nodes[n].node;
    const Mask shape_only = shape_only_inputs(*node.op, node.attributes);
    for_each_need(node, [&](Node& needed, int input) {
      FormNode& below = form.nodes[form.index_of(needed)];
      const bool only_shape = input >= 0 && (shape_only & bit(input));
      // with_updates and its kind order themselves after inputs whose values they do not read.
      if (!only_shape || node.op->stateful) below.runs = true;
      if (!only_shape && input >= 0)
        below.wanted |= bit(static_cast<int>(node.inputs[static_cast<std::size_t>(input)].output));
    });
  }
  return form;
}

}  // namespace ebb::detail
