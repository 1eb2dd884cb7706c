#include <algorithm>

#include "ebb/core/base/error.h"
#include "ebb/core/device/world_state.h"
#include "ebb/core/kernels/fused.h"
#include "ebb/core/tensor/kernel_of.h"
#include "ebb/graph/passes/offload.h"
#include "ebb/graph/passes/passes.h"
#include "ebb/graph/passes/timeline.h"

namespace ebb::detail {

namespace {

// Operator whose result the step keeps: a chain's last, which also gives the step its line.
const char* name_of(const Node& node) {
  const FusedChain* const chain = chain_of(node);
  if (!chain) return node.op->name;
  return chain->sum ? chain->sum->mean ? "mean" : "sum" : chain->steps.back().name;
}

memory::Tag tag_of(const Draft& draft, const Schedule& schedule, std::size_t step) {
  if (step >= schedule.order.size()) return {};
  const Node& node = *draft.steps[schedule.order[step]].node;
  return tag(name_of(node), node.site);
}

void keep_largest(std::vector<memory::Holder>& holders) {
  constexpr std::size_t kMost = 16;
  std::ranges::stable_sort(holders, [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (holders.size() > kMost) holders.resize(kMost);
  holders.shrink_to_fit();
}

// A session holds all parameters of its graph, and the other variables that this run touches.
void hold_variables(const Draft& draft, memory::Plan& plan) {
  const auto& variables = draft.graph->variables();
  const auto hold = [&](const VariableDeclaration& variable) {
    const std::size_t bytes = draft.runtime->profile().rounded(variable.spec.bytes());
    const bool is_parameter = variable.category == memory::Category::parameter;
    if (!is_parameter && draft.slots_on_host) {
      plan.host_state_bytes += bytes;
      return;
    }
    (is_parameter ? plan.parameter_bytes : plan.optimizer_state_bytes) += bytes;
    plan.by_category[static_cast<std::size_t>(variable.category)] += bytes;
  };
  for (const VariableDeclaration& variable : variables)
    if (variable.category == memory::Category::parameter) hold(variable);
  for (const Index index : draft.variables)
    if (variables[index].category != memory::Category::parameter) hold(variables[index]);
}

// Asks each collective what it sends in a run, as on a simulated device.
Sent sent_by(const Draft& draft) {
  const Sent before = std::exchange(counted(), {});
  for (const DraftStep& step : draft.steps) {
    const DeviceKernel& kernel = kernel_of(*step.node->op, *draft.runtime, step.node->site);
    if (!step.node->op->communicates || !kernel.simulated) continue;
    std::vector<Buffer> inputs, outputs;
    for (const DraftOperand& input : draft.inputs_of(step))
      inputs.push_back({nullptr, draft.specs[input.spec]});
    for (const DraftOperand& output : draft.outputs_of(step))
      outputs.push_back({nullptr, draft.specs[output.spec]});
    static_cast<void>(kernel.simulated(
        {.inputs = inputs, .outputs = outputs, .attributes = &step.node->attributes}));
  }
  return std::exchange(counted(), before);
}

}  // namespace

std::size_t variable_bytes(const Draft& draft) {
  memory::Plan plan;
  hold_variables(draft, plan);
  const memory::Profile& profile = draft.runtime->profile();
  return profile.in_pages(plan.parameter_bytes) + profile.in_pages(plan.optimizer_state_bytes);
}

std::size_t slot_traffic_bytes(const Draft& draft) {
  std::size_t bytes = 0;
  for (const DraftStep& step : draft.steps) {
    const std::span<const DraftOperand> inputs = draft.inputs_of(step);
    for (std::size_t j = 0; j < inputs.size(); ++j) {
      if (inputs[j].value.memory == kNone) continue;
      const DraftMemory& memory = draft.memories[inputs[j].value.memory];
      if (memory.kind == Location::variable &&
          draft.graph->variables()[memory.index].category != memory::Category::parameter)
        bytes += draft.specs[inputs[j].spec].bytes() * (step.node->op->updates.has(j) ? 2 : 1);
    }
  }
  return bytes;
}

memory::Work work_of(const Draft& draft) {
  memory::Work sum;
  for (const DraftStep& step : draft.steps) {
    if (is_move(*step.node)) continue;  // of its own work Plan::moved_bytes tells
    const memory::Work work = work_of(draft, step);
    sum.products += work.products;
    sum.moved_bytes += work.moved_bytes;
  }
  return sum;
}

memory::Plan make_plan(const Draft& draft, const Schedule& schedule) {
  using memory::Category;
  const memory::Profile& profile = draft.runtime->profile();
  memory::Plan plan;
  plan.updates_early = schedule.updates_early;
  plan.is_reordered = schedule.is_reordered;
  plan.work = work_of(draft);
  const Sent sent = sent_by(draft);
  plan.sent_bytes = sent.bytes;
  plan.sent_messages = sent.messages;
  for (const DraftMove& move : draft.moves) {
    plan.moved_values += move.source == kNone;
    plan.moved_bytes += draft.memories[move.memory].bytes;
  }
  for (const DraftStep& step : draft.steps) {
    const FusedChain* const chain = chain_of(*step.node);
    plan.nodes += chain ? chain->steps.size() + chain->sum.has_value() : !is_move(*step.node);
    plan.repeated_nodes += step.repeats != kNone;
  }

  hold_variables(draft, plan);
  plan.page_locked_bytes = schedule.host_layout.total_bytes + plan.host_state_bytes;
  if (draft.slots_on_host) plan.moved_bytes += slot_traffic_bytes(draft);

  plan.captured_bytes = captured_bytes(draft.captured, profile);

  const memory::Placement& layout = schedule.layout;
  const std::size_t held = plan.parameter_bytes + plan.optimizer_state_bytes + plan.feed_bytes;
  plan.arena_bytes = layout.total_bytes;
  plan.peak_bytes = held + layout.total_bytes;
  plan.lower_bound_bytes = held + layout.lower_bound_bytes;
  plan.naive_bytes = held;
  for (const DraftMemory& memory : draft.memories)
    if (memory.kind == Location::arena && memory.fetch == kNone)
      plan.naive_bytes += profile.rounded(memory.bytes);
  for (const std::size_t bytes : schedule.workspace) {
    plan.naive_bytes += profile.rounded(bytes);
    plan.workspace_bytes = std::max(plan.workspace_bytes, bytes);
  }
  plan.reserved_bytes = profile.in_pages(plan.parameter_bytes) +
                        profile.in_pages(plan.optimizer_state_bytes) +
                        profile.in_pages(plan.arena_bytes);

  for (std::size_t b = 0; b < schedule.buffers.size(); ++b) {
    const memory::Lifetime& life = schedule.buffers[b];
    if (life.first > layout.peak_step || layout.peak_step >= life.end) continue;
    plan.arena_holders.push_back({tag_of(draft, schedule, life.first), life.bytes, 1});
    plan.arena_by_category[static_cast<std::size_t>(schedule.buffer_categories[b])] += life.bytes;
  }
  plan.arena_by_category[static_cast<std::size_t>(Category::temporary)] +=
      layout.total_bytes - layout.lower_bound_bytes;
  for (std::size_t i = 0; i < memory::kCategoryCount; ++i)
    plan.by_category[i] += plan.arena_by_category[i];
  if (layout.peak_step < schedule.order.size()) {
    plan.peak_tag = tag_of(draft, schedule, layout.peak_step);
    plan.peak_node = plan.peak_tag.operator_name + at(plan.peak_tag);
  }
  keep_largest(plan.arena_holders);
  return plan;
}

}  // namespace ebb::detail
