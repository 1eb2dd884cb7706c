#include "ebb/core/base/error.h"
#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

std::string name_of(const Draft& draft, const DraftOperand& operand) {
  if (operand.value.memory == kNone) return "-";
  const DraftMemory& memory = draft.memories[operand.value.memory];
  const Index feed = memory.kind == Location::feed ? memory.index : memory.slot_of;
  std::string text = feed != kNone ? draft.feeds[feed]->extra->name
                     : memory.kind == Location::variable
                         ? draft.graph->variables()[memory.index].name
                     : memory.kind == Location::captured ? "captured" + std::to_string(memory.index)
                                                         : "%" + std::to_string(memory.producer);
  if (!memory.updates.empty()) text += "@" + std::to_string(operand.version);
  if (operand.value.offset) text += "+" + std::to_string(operand.value.offset);
  return text;
}

}  // namespace

// "3: add_assign f32[4] (model.cpp:12): w@0, %2; before 5 7"
std::string describe(const Draft& draft) {
  std::string text;
  for (Index s = 0; s < draft.steps.size(); ++s) {
    const DraftStep& step = draft.steps[s];
    text += std::to_string(s) + ": " + step.node->op->name;
    for (const DraftOperand& output : draft.outputs_of(step))
      text += " " + draft.specs[output.spec].to_string();
    text += at(step.node->site) + ":";
    for (const DraftOperand& input : draft.inputs_of(step)) text += " " + name_of(draft, input);
    if (!draft.first_edge.empty() && draft.first_edge[s] < draft.first_edge[s + 1]) {
      text += "; before";
      for (Index e = draft.first_edge[s]; e < draft.first_edge[s + 1]; ++e)
        text += " " + std::to_string(draft.edges[e]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace ebb::detail
