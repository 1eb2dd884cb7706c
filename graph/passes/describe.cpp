#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

std::string name_of(const Form& form, const FormOperand& operand) {
  if (operand.value.memory == kNone) return "-";
  const FormMemory& memory = form.memories[operand.value.memory];
  std::string text;
  switch (memory.kind) {
    case FormMemory::arena:
      text = memory.slot_of == kNone ? "%" + std::to_string(memory.producer)
                                     : form.feeds[memory.slot_of]->extra->name;
      break;
    case FormMemory::variable:
      text = form.graph->variables()[memory.index].name;
      break;
    case FormMemory::captured:
      text = "captured" + std::to_string(memory.index);
      break;
    case FormMemory::feed:
      text = form.feeds[memory.index]->extra->name;
      break;
  }
  if (!memory.updates.empty()) text += "@" + std::to_string(operand.version);
  if (operand.value.offset) text += "+" + std::to_string(operand.value.offset);
  return text;
}

}  // namespace

// "3: add_assign f32[4] (model.cpp:12): w@0, %2; before 5 7"
std::string describe(const Form& form) {
  std::string text;
  for (Index s = 0; s < form.steps.size(); ++s) {
    const FormStep& step = form.steps[s];
    text += std::to_string(s) + ": " + step.node->op->name;
    for (const FormOperand& output : form.outputs_of(step))
      text += " " + form.specs[output.spec].to_string();
    text += std::string(" (") + step.node->site.file + ":" + std::to_string(step.node->site.line) +
            "):";
    for (const FormOperand& input : form.inputs_of(step)) text += " " + name_of(form, input);
    if (!form.first_edge.empty() && form.first_edge[s] < form.first_edge[s + 1]) {
      text += "; before";
      for (Index e = form.first_edge[s]; e < form.first_edge[s + 1]; ++e)
        text += " " + std::to_string(form.edges[e]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace ebb::detail
