#include <functional>
#include <queue>
#include <utility>

#include "ebb/core/base/error.h"
#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

std::span<const Index> waiting_for(const Form& form, Index step) {
  return {form.edges.data() + form.first_edge[step],
          form.first_edge[step + 1] - form.first_edge[step]};
}

// Throws eager's error: a step needs a version that another of its inputs has overwritten.
[[noreturn]] void throw_circle(const Form& form, const std::vector<Index>& open) {
  for (Index s = 0; s < form.steps.size(); ++s) {
    if (open[s] == 0) continue;
    const FormStep& step = form.steps[s];
    for (const FormOperand& input : form.inputs_of(step)) {
      if (input.value.memory == kNone) continue;
      for (const Update& update : form.memories[input.value.memory].updates) {
        if (update.version <= input.version || open[update.step] == 0 || update.step >= s) continue;
        const Node& by = *form.steps[update.step].node;
        throw Error(message(step.node->op->name,
                            "the backward pass needs a " + form.specs[input.spec].to_string() +
                                " at version " + std::to_string(input.version) +
                                ", but also what depends on the update in place (" + by.op->name +
                                ", " + by.site.file + ":" + std::to_string(by.site.line) +
                                ") that makes version " + std::to_string(update.version) +
                                " of it; copy() what is needed of the older version",
                            step.node->site));
      }
    }
  }
  refuse(form.what, "the updates in place of this run wait for one another");
}

// Orders the steps along the edges; among ready steps the least key goes first.
template <class Key>
std::vector<Index> sorted(const Form& form, Key key) {
  std::vector<Index> open(form.steps.size(), 0);  // number of steps that each still waits for
  for (const Index to : form.edges) ++open[to];
  using Entry = std::pair<Index, Index>;  // key, step
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (Index s = 0; s < form.steps.size(); ++s)
    if (open[s] == 0) ready.emplace(key(s), s);
  std::vector<Index> order;
  order.reserve(form.steps.size());
  while (!ready.empty()) {
    const Index step = ready.top().second;
    ready.pop();
    order.push_back(step);
    for (const Index next : waiting_for(form, step))
      if (--open[next] == 0) ready.emplace(key(next), next);
  }
  if (order.size() < form.steps.size()) throw_circle(form, open);
  return order;
}

bool updates_state(const Form& form, const FormStep& step) {
  if (step.node->op->updates.empty()) return false;
  const std::span<const FormOperand> inputs = form.inputs_of(step);
  for (std::size_t j = 0; j < inputs.size(); ++j)
    if (step.node->op->updates.has(j) &&
        (inputs[j].value.memory == kNone ||
         form.memories[inputs[j].value.memory].kind == FormMemory::arena))
      return false;
  return true;
}

// Steps to run as early as possible: updates of state, and the scalars made of scalars alone that
// they wait for (counts, rates, whether an accumulated update is due).
std::vector<bool> urgent_steps(const Form& form, const std::vector<Index>& order) {
  constexpr std::size_t kScalarBytes = 16;
  std::vector<bool> is_scalar(form.steps.size(), true), urgent(form.steps.size(), false);
  for (const Index s : order) {
    for (const FormOperand& output : form.outputs_of(form.steps[s]))
      if (form.specs[output.spec].bytes() > kScalarBytes) is_scalar[s] = false;
    if (is_scalar[s]) continue;
    for (const Index next : waiting_for(form, s)) is_scalar[next] = false;
  }
  for (auto s = order.rbegin(); s != order.rend(); ++s) {
    urgent[*s] = updates_state(form, form.steps[*s]);
    if (!is_scalar[*s]) continue;
    for (const Index next : waiting_for(form, *s)) urgent[*s] = urgent[*s] || urgent[next];
  }
  return urgent;
}

}  // namespace

Schedule order(const Form& form, bool updates_early) {
  Schedule schedule;
  schedule.updates_early = updates_early;
  schedule.order = sorted(form, [](Index s) { return s; });
  if (!updates_early) return schedule;
  const std::vector<bool> urgent = urgent_steps(form, schedule.order);
  schedule.order = sorted(form, [&](Index s) { return urgent[s] ? 0 : s; });
  return schedule;
}

}  // namespace ebb::detail
