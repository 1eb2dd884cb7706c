#include "ebb/core/base/error.h"
#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

// Applies a shape rule. Its error names the fault and the operator's line; this adds the line of
// the run or plan.
void infer(const char* what, Inference& inference) {
  try {
    inference.op.infer(inference);
  } catch (const ShapeError& error) {
    if (!entry().line) throw;
    throw ShapeError(std::string(error.what()) + ", in a " + what + at(entry()));
  }
}

// Checks the feeds and maps placeholders to them.
std::unordered_map<const Node*, Index> take_feeds(Draft& draft, const FedShapes& shapes) {
  std::unordered_map<const Node*, Index> fed_as;
  for (const FedShape& fed : shapes) {
    require_placeholder(draft.what, *draft.graph, fed.placeholder,
                        static_cast<std::size_t>(&fed - shapes.data()), shapes.size());
    const Node* node = fed.placeholder.impl()->node.get();
    if (!fed_as.emplace(node, static_cast<Index>(draft.feeds.size())).second)
      refuse(draft.what, described(*node) + " is fed twice");
    const Spec& declared = node->outputs[0];
    bool fits = declared.shape.rank() == fed.shape.rank() && !fed.shape.is_open();
    for (int axis = 0; fits && axis < fed.shape.rank(); ++axis)
      fits = declared.shape.dim(axis) == kOpen || declared.shape.dim(axis) == fed.shape[axis];
    if (!fits)
      refuse<ShapeError>(draft.what, described(*node) + " is " + declared.to_string() +
                                         " and cannot be fed with shape " + fed.shape.to_string());
    draft.feeds.push_back(node);
    draft.feed_specs.push_back({declared.dtype, fed.shape});
  }
  return fed_as;
}

}  // namespace

void infer(Draft& draft, const FedShapes& shapes) {
  const auto fed_as = take_feeds(draft, shapes);
  for (const DraftNode& item : draft.nodes) {
    const Node& node = *item.node;
    if (node.op == &placeholder_op) {
      const auto fed = fed_as.find(&node);
      if (fed == fed_as.end()) refuse(draft.what, described(node) + " is not fed");
      draft.specs.push_back(draft.feed_specs[fed->second]);
    } else if (node.op->is_source) {
      draft.specs.push_back(node.outputs[0]);
    } else {
      Specs in, out;
      for (const Node::Source& source : node.inputs)
        in.push_back(draft.specs[draft.output_of(source)]);
      Inference inference{*node.op, {in.data(), in.size()}, node.attributes, node.site, out};
      infer(draft.what, inference);
      draft.specs.insert(draft.specs.end(), out.begin(), out.end());
    }
  }
}

}  // namespace ebb::detail
