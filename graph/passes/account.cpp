#include <algorithm>

#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

memory::Plan account(const Form& form, const Schedule& schedule) {
  using memory::Category;
  const memory::Profile& profile = form.runtime->profile();
  memory::Plan plan;
  plan.nodes = form.steps.size();
  plan.updates_early = schedule.updates_early;

  // A session holds all parameters of its graph, and of the other variables those that it touches.
  const auto& variables = form.graph->variables();
  const auto hold = [&](const VariableDeclaration& variable) {
    const std::size_t bytes = profile.rounded(variable.spec.bytes());
    const bool is_parameter = variable.category == Category::parameter;
    (is_parameter ? plan.parameter_bytes : plan.optimizer_state_bytes) += bytes;
    plan.by_category[static_cast<std::size_t>(variable.category)] += bytes;
  };
  for (const VariableDeclaration& variable : variables)
    if (variable.category == Category::parameter) hold(variable);
  for (const Index index : form.variables)
    if (variables[index].category != Category::parameter) hold(variables[index]);

  const Placed& placed = schedule.placed;
  const std::size_t held = plan.parameter_bytes + plan.optimizer_state_bytes + plan.feed_bytes;
  plan.arena_bytes = placed.total_bytes;
  plan.peak_bytes = held + placed.total_bytes;
  plan.lower_bound_bytes = held + placed.lower_bound_bytes;
  plan.naive_bytes = held;
  for (const FormMemory& memory : form.memories)
    if (memory.kind == FormMemory::arena && memory.fetch == kNone)
      plan.naive_bytes += profile.rounded(memory.bytes);
  for (const std::size_t bytes : schedule.workspace) {
    plan.naive_bytes += profile.rounded(bytes);
    plan.workspace_bytes = std::max(plan.workspace_bytes, bytes);
  }
  const auto paged = [&](std::size_t bytes) {
    return (bytes + profile.page_bytes - 1) / profile.page_bytes * profile.page_bytes;
  };
  plan.reserved_bytes =
      paged(plan.parameter_bytes) + paged(plan.optimizer_state_bytes) + paged(plan.arena_bytes);

  for (std::size_t b = 0; b < schedule.buffers.size(); ++b) {
    const BufferLife& life = schedule.buffers[b];
    if (life.first <= placed.peak_step && placed.peak_step <= life.last)
      plan.arena_by_category[static_cast<std::size_t>(schedule.buffer_categories[b])] += life.bytes;
  }
  plan.arena_by_category[static_cast<std::size_t>(Category::temporary)] +=
      placed.total_bytes - placed.lower_bound_bytes;
  for (std::size_t i = 0; i < memory::kCategoryCount; ++i)
    plan.by_category[i] += plan.arena_by_category[i];
  if (placed.peak_step < schedule.order.size()) {
    const Node& node = *form.steps[schedule.order[placed.peak_step]].node;
    plan.peak_node = std::string(node.op->name) + " (" + node.site.file + ":" +
                     std::to_string(node.site.line) + ")";
  }
  return plan;
}

}  // namespace ebb::detail
