#include <unordered_set>

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

// Checks the feeds and tells the placeholders theirs.
void take_feeds(Draft& draft, const FedShapes& shapes) {
  std::unordered_set<const Node*> seen;
  for (const FedShape& fed : shapes) {
    require_placeholder(draft.what, *draft.graph, fed.placeholder,
                        static_cast<std::size_t>(&fed - shapes.data()), shapes.size());
    const Node* node = fed.placeholder.impl()->node.get();
    if (!seen.insert(node).second) refuse(draft.what, described(*node) + " is fed twice");
    const Spec& declared = node->outputs[0];
    bool fits = declared.shape.rank() == fed.shape.rank() && !fed.shape.is_open();
    for (int axis = 0; fits && axis < fed.shape.rank(); ++axis)
      fits = declared.shape.dim(axis) == kOpen || declared.shape.dim(axis) == fed.shape[axis];
    if (!fits)
      refuse<ShapeError>(draft.what, described(*node) + " is " + declared.to_string() +
                                         " and cannot be fed with shape " + fed.shape.to_string());
    if (const Index needed = draft.index_of(*node); needed != kNone)
      draft.nodes[needed].feed = static_cast<Index>(draft.feeds.size());
    draft.feeds.push_back(node);
    draft.feed_specs.push_back({declared.dtype, fed.shape});
  }
}

}  // namespace

void infer(Draft& draft, const FedShapes& shapes) {
  take_feeds(draft, shapes);
  for (const DraftNode& item : draft.nodes) {
    const Node& node = *item.node;
    if (node.op == &placeholder_op) {
      if (item.feed == kNone) refuse(draft.what, described(node) + " is not fed");
      draft.specs.push_back(draft.feed_specs[item.feed]);
    } else if (node.op->is_source) {
      draft.specs.push_back(node.outputs[0]);
    } else {
      const Specs in = draft.input_specs(node);
      Specs out;
      Inference inference{*node.op, {in.data(), in.size()}, node.attributes, node.site, out};
      infer(draft.what, inference);
      draft.specs.insert(draft.specs.end(), out.begin(), out.end());
    }
  }
}

}  // namespace ebb::detail
