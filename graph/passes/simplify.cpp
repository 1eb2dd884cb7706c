#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

std::vector<bool> written_outputs(const Draft& draft) {
  std::vector<bool> written(draft.specs.size(), false);
  for (const DraftNode& item : draft.nodes) {
    if (!item.runs || item.node->op->updates.empty()) continue;
    for (std::size_t i = 0; i < item.node->inputs.size(); ++i) {
      if (!item.node->op->updates.has(i)) continue;
      const Root root = root_of(item.node->inputs[i]);
      written[draft.at(*root.node).first_output + root.output] = true;
    }
  }
  for (const DraftNode& item : draft.nodes)
    if (item.node->root)  // a view, an update, a captured tensor that shares memory
      written[item.first_output] =
          written[draft.at(*item.node->root).first_output + item.node->root_output];
  return written;
}

// To the program, a result that equals its input has memory of its own. The input may stand for it
// only while nothing writes to either.
void simplify(Draft& draft) {
  const std::vector<bool> written = written_outputs(draft);
  for (DraftNode& item : draft.nodes) {
    const Node& node = *item.node;
    if (!item.runs || node.root || !node.op->is_identity) continue;
    const Index input = draft.output_of(node.inputs[0]);
    if (written[item.first_output] || written[input]) continue;
    const Specs in = draft.input_specs(node);
    const MemoryQuery query{{in.data(), in.size()},
                            {draft.specs.data() + item.first_output, node.outputs.size()},
                            &node.attributes};
    item.is_input = node.op->is_identity(query);
  }
}

}  // namespace ebb::detail
