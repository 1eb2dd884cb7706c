#include <algorithm>

#include "ebb/core/tensor/kernel_of.h"
#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

using memory::Category;

class Assigner {
 public:
  Assigner(const Form& form, Schedule& schedule) : form_(form), schedule_(schedule) {}

  void live() {
    schedule_.lives.resize(form_.memories.size());
    schedule_.owners.resize(form_.memories.size());
    schedule_.categories.resize(form_.memories.size());
    for (Index m = 0; m < form_.memories.size(); ++m) {
      schedule_.owners[m] = m;
      schedule_.categories[m] = form_.memories[m].category;
    }
    for (std::size_t now = 0; now < schedule_.order.size(); ++now) {
      const FormStep& step = form_.steps[schedule_.order[now]];
      for (const FormOperand& input : form_.inputs_of(step)) use(input.value, now, *step.node);
      for (const FormOperand& output : form_.outputs_of(step)) use(output.value, now, *step.node);
    }
    for (const FormFetch& fetch : form_.fetches) {  // read once more, after the last step
      if (fetch.value.memory == kNone) continue;
      Schedule::Life& life = schedule_.lives[fetch.value.memory];
      life.first = std::min(life.first, schedule_.order.size());
      life.last = schedule_.order.size();
    }
    for (Index m = 0; m < form_.memories.size(); ++m)  // written before the first step
      if (form_.memories[m].slot_of != kNone && is_used(m)) schedule_.lives[m].first = 0;
  }

  // In execution order, so that a chain of takeovers ends in one memory.
  void share_and_measure(bool share) {
    schedule_.destroyed.assign(form_.steps.size(), {});
    schedule_.workspace.assign(form_.steps.size(), 0);
    for (std::size_t now = 0; now < schedule_.order.size(); ++now) {
      const Index s = schedule_.order[now];
      if (share) {
        take_over(form_.steps[s], now);
        schedule_.destroyed[s] = destroyed(form_.steps[s], now);
      }
      schedule_.workspace[s] = workspace_bytes(form_.steps[s], schedule_.destroyed[s]);
    }
  }

  void list_buffers() {
    const memory::Profile& profile = form_.runtime->profile();
    const auto add = [&](std::size_t bytes, std::size_t first, std::size_t last,
                         Category category) {
      schedule_.buffers.push_back({first, last, profile.rounded(bytes)});
      schedule_.buffer_categories.push_back(category);
      return static_cast<Index>(schedule_.buffers.size() - 1);
    };
    schedule_.buffer_of.assign(form_.memories.size(), kNone);
    schedule_.workspace_buffer.assign(form_.steps.size(), kNone);
    for (Index m = 0; m < form_.memories.size(); ++m) {
      const FormMemory& memory = form_.memories[m];
      if (memory.kind != FormMemory::arena || schedule_.owners[m] != m || memory.fetch != kNone)
        continue;
      if (memory.slot_of != kNone && !is_used(m)) continue;
      const Schedule::Life& life = schedule_.lives[m];
      schedule_.buffer_of[m] = add(memory.bytes, life.first, life.last, schedule_.categories[m]);
    }
    for (Index m = 0; m < form_.memories.size(); ++m)
      if (form_.memories[m].kind == FormMemory::arena)
        schedule_.buffer_of[m] = schedule_.buffer_of[schedule_.owners[m]];
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

  void use(const FormValue& value, std::size_t now, const Node& user) {
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
  bool is_last_read(const FormStep& step, std::size_t j, std::size_t now) const {
    const FormOperand& input = form_.inputs_of(step)[j];
    if (input.value.memory == kNone) return false;
    const Index owner = schedule_.owners[input.value.memory];
    const FormMemory& memory = form_.memories[owner];
    if (memory.kind != FormMemory::arena || memory.fetch != kNone) return false;
    if (schedule_.lives[owner].last != now || input.value.offset != 0) return false;
    if (memory.bytes != form_.specs[input.spec].bytes()) return false;
    const std::span<const FormOperand> inputs = form_.inputs_of(step);
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (k != j && inputs[k].value.memory != kNone &&
          schedule_.owners[inputs[k].value.memory] == owner)
        return false;
    return true;
  }

  // Lets output 0 live in the memory of an input of equal size. A partial view and a broadcast
  // input do not qualify.
  void take_over(const FormStep& step, std::size_t now) {
    const OpDef& op = *step.node->op;
    if (op.takes_over.empty() || !op.updates.empty()) return;
    const FormOperand& output = form_.outputs_of(step)[0];
    if (output.value.memory == kNone || form_.memories[output.value.memory].fetch != kNone) return;
    for (std::size_t j = 0; j < step.inputs; ++j) {
      const FormOperand& input = form_.inputs_of(step)[j];
      if (!op.takes_over.has(j) || !is_last_read(step, j, now)) continue;
      if (form_.specs[input.spec].bytes() != form_.specs[output.spec].bytes()) continue;
      const Index owner = schedule_.owners[input.value.memory];
      schedule_.lives[owner].last = schedule_.lives[output.value.memory].last;
      if (schedule_.categories[owner] == Category::temporary)
        schedule_.categories[owner] = schedule_.categories[output.value.memory];
      schedule_.owners[output.value.memory] = owner;
      return;
    }
  }

  IndexSet destroyed(const FormStep& step, std::size_t now) const {
    IndexSet found;
    for (std::size_t j = 0; j < step.inputs; ++j)
      if (step.node->op->destroys.has(j) && is_last_read(step, j, now)) found.insert(j);
    return found;
  }

  std::size_t workspace_bytes(const FormStep& step, const IndexSet& destroyed) {
    const MemoryRule rule = kernel_of(*step.node->op, *form_.runtime, step.node->site).memory;
    if (!rule) return 0;
    inputs_.clear();
    outputs_.clear();
    for (const FormOperand& input : form_.inputs_of(step))
      inputs_.push_back(form_.specs[input.spec]);
    for (const FormOperand& output : form_.outputs_of(step))
      outputs_.push_back(form_.specs[output.spec]);
    return rule({.inputs = inputs_,
                 .outputs = outputs_,
                 .attributes = &step.node->attributes,
                 .destroyed = &destroyed,
                 .unwanted = &step.unwanted,
                 .profile = &form_.runtime->profile()})
        .workspace_bytes;
  }

  const Form& form_;
  Schedule& schedule_;
  std::vector<Spec> inputs_, outputs_;
};

}  // namespace

void assign(const Form& form, Schedule& schedule, bool share) {
  Assigner assigner(form, schedule);
  assigner.live();
  assigner.share_and_measure(share);
  assigner.list_buffers();
}

void place(Schedule& schedule) { schedule.placed = place(schedule.buffers); }

}  // namespace ebb::detail
