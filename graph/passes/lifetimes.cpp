#include <algorithm>

#include "ebb/core/tensor/kernel_of.h"
#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

using memory::Category;

class Lifetimes {
 public:
  Lifetimes(const Draft& draft, Schedule& schedule) : draft_(draft), schedule_(schedule) {}

  void live() {
    schedule_.lives.resize(draft_.memories.size());
    schedule_.owners.resize(draft_.memories.size());
    schedule_.categories.resize(draft_.memories.size());
    for (Index m = 0; m < draft_.memories.size(); ++m) {
      schedule_.owners[m] = m;
      schedule_.categories[m] = draft_.memories[m].category;
    }
    for (std::size_t now = 0; now < schedule_.order.size(); ++now) {
      const DraftStep& step = draft_.steps[schedule_.order[now]];
      for (const DraftOperand& input : draft_.inputs_of(step)) use(input.value, now, *step.node);
      for (const DraftOperand& output : draft_.outputs_of(step)) use(output.value, now, *step.node);
    }
    for (const DraftFetch& fetch : draft_.fetches) {  // read once more, after the last step
      if (fetch.value.memory == kNone) continue;
      Schedule::Life& life = schedule_.lives[fetch.value.memory];
      life.first = std::min(life.first, schedule_.order.size());
      life.last = schedule_.order.size();
    }
    for (Index m = 0; m < draft_.memories.size(); ++m)  // written before the first step
      if (draft_.memories[m].slot_of != kNone && is_used(m)) schedule_.lives[m].first = 0;
  }

  // In execution order, so that a chain of takeovers ends in one memory.
  void share_and_measure(bool share) {
    schedule_.destroyed.assign(draft_.steps.size(), {});
    schedule_.workspace.assign(draft_.steps.size(), 0);
    for (std::size_t now = 0; now < schedule_.order.size(); ++now) {
      const Index s = schedule_.order[now];
      if (share) {
        take_over(draft_.steps[s], now);
        schedule_.destroyed[s] = destroyed(draft_.steps[s], now);
      }
      schedule_.workspace[s] = workspace_bytes(draft_, draft_.steps[s], schedule_.destroyed[s]);
    }
  }

  void list_buffers() {
    const memory::Profile& profile = draft_.runtime->profile();
    const auto add = [&](std::size_t bytes, std::size_t first, std::size_t last,
                         Category category) {
      schedule_.buffers.push_back({first, last + 1, profile.rounded(bytes)});
      schedule_.buffer_categories.push_back(category);
      return static_cast<Index>(schedule_.buffers.size() - 1);
    };
    schedule_.buffer_of.assign(draft_.memories.size(), kNone);
    schedule_.workspace_buffer.assign(draft_.steps.size(), kNone);
    for (Index m = 0; m < draft_.memories.size(); ++m) {
      const DraftMemory& memory = draft_.memories[m];
      if (memory.kind != Location::arena || schedule_.owners[m] != m || memory.fetch != kNone)
        continue;
      if (memory.slot_of != kNone && !is_used(m)) continue;
      const Schedule::Life& life = schedule_.lives[m];
      schedule_.buffer_of[m] = add(memory.bytes, life.first, life.last, schedule_.categories[m]);
    }
    for (Index m = 0; m < draft_.memories.size(); ++m)
      if (draft_.memories[m].kind == Location::arena)
        schedule_.buffer_of[m] = schedule_.buffer_of[schedule_.owners[m]];
    schedule_.host_buffers.clear();
    for (Index m = 0; m < draft_.memories.size(); ++m)
      if (const DraftMemory& memory = draft_.memories[m]; memory.kind == Location::host) {
        const Schedule::Life& life = schedule_.lives[m];
        schedule_.host_buffers.push_back(
            {life.first, life.last + 1, profile.rounded(memory.bytes)});
      }
    for (std::size_t now = 0; now < schedule_.order.size(); ++now) {
      const Index s = schedule_.order[now];
      if (schedule_.workspace[s])
        schedule_.workspace_buffer[s] = add(schedule_.workspace[s], now, now, Category::workspace);
    }
  }

 private:
  bool is_used(Index m) const noexcept {
    return schedule_.lives[m].first != Schedule::Life{}.first;
  }

  void use(const DraftValue& value, std::size_t now, const Node& user) {
    if (value.memory == kNone) return;
    Schedule::Life& life = schedule_.lives[value.memory];
    life.first = std::min(life.first, now);
    life.last = std::max(life.last, now);
    // Values of the forward pass that the backward pass reads are activations.
    Category& category = schedule_.categories[value.memory];
    if (user.category == Category::gradient && category == Category::temporary)
      category = Category::activation;
  }

  // Whether nobody needs an input after this step: it covers a whole memory of the arena and no
  // other input reads it.
  bool is_last_read(const DraftStep& step, std::size_t j, std::size_t now) const {
    const DraftOperand& input = draft_.inputs_of(step)[j];
    if (input.value.memory == kNone) return false;
    const Index owner = schedule_.owners[input.value.memory];
    const DraftMemory& memory = draft_.memories[owner];
    if (memory.kind != Location::arena || memory.fetch != kNone) return false;
    if (schedule_.lives[owner].last != now || input.value.offset != 0) return false;
    if (memory.bytes != draft_.specs[input.spec].bytes()) return false;
    const std::span<const DraftOperand> inputs = draft_.inputs_of(step);
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (k != j && inputs[k].value.memory != kNone &&
          schedule_.owners[inputs[k].value.memory] == owner)
        return false;
    return true;
  }

  // Lets output 0 live in the memory of an input of equal dtype and size. A partial view and a
  // broadcast input do not qualify.
  void take_over(const DraftStep& step, std::size_t now) {
    const OpDef& op = *step.node->op;
    if (op.takes_over.empty() || !op.updates.empty()) return;
    if (ends_in_sum(*step.node)) return;  // inputs are read until the last result
    const DraftOperand& output = draft_.outputs_of(step)[0];
    if (output.value.memory == kNone || draft_.memories[output.value.memory].fetch != kNone) return;
    for (std::size_t j = 0; j < step.inputs; ++j) {
      const DraftOperand& input = draft_.inputs_of(step)[j];
      if (!op.takes_over.has(j) || !is_last_read(step, j, now)) continue;
      if (!are_alike(draft_.specs[input.spec], draft_.specs[output.spec])) continue;
      const Index owner = schedule_.owners[input.value.memory];
      schedule_.lives[owner].last = schedule_.lives[output.value.memory].last;
      if (schedule_.categories[owner] == Category::temporary)
        schedule_.categories[owner] = schedule_.categories[output.value.memory];
      schedule_.owners[output.value.memory] = owner;
      return;
    }
  }

  IndexSet destroyed(const DraftStep& step, std::size_t now) const {
    IndexSet found;
    for (std::size_t j = 0; j < step.inputs; ++j)
      if (step.node->op->destroys.has(j) && is_last_read(step, j, now)) found.insert(j);
    return found;
  }

  const Draft& draft_;
  Schedule& schedule_;
};

}  // namespace

MemoryQuery query_of(const Draft& draft, const DraftStep& step, Specs& inputs, Specs& outputs) {
  for (const DraftOperand& input : draft.inputs_of(step)) inputs.push_back(draft.specs[input.spec]);
  for (const DraftOperand& output : draft.outputs_of(step))
    outputs.push_back(draft.specs[output.spec]);
  return {.inputs = {inputs.data(), inputs.size()},
          .outputs = {outputs.data(), outputs.size()},
          .attributes = &step.node->attributes,
          .unwanted = &step.unwanted,
          .profile = &draft.runtime->profile()};
}

std::size_t workspace_bytes(const Draft& draft, const DraftStep& step, const IndexSet& destroyed) {
  const MemoryRule rule = kernel_of(*step.node->op, *draft.runtime, step.node->site).memory;
  if (!rule) return 0;
  Specs inputs, outputs;
  MemoryQuery query = query_of(draft, step, inputs, outputs);
  query.destroyed = &destroyed;
  return rule(query).workspace_bytes;
}

void lay_out(const Draft& draft, Schedule& schedule, bool share) {
  Lifetimes lifetimes(draft, schedule);
  lifetimes.live();
  lifetimes.share_and_measure(share);
  lifetimes.list_buffers();
  // Some milliseconds for usual plans, and a quarter of a second at most.
  static constexpr std::size_t kStepsPerBuffer = 10'000, kMostSteps = 2'000'000;
  const auto placed = [](const std::vector<memory::Lifetime>& buffers) {
    return memory::place(buffers,
                         {.steps = std::min(kStepsPerBuffer * buffers.size(), kMostSteps)});
  };
  schedule.layout = placed(schedule.buffers);
  schedule.host_layout = placed(schedule.host_buffers);
}

}  // namespace ebb::detail
