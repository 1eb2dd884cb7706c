#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "ebb/core/base/error.h"
#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

// Throws eager's error: a step needs a version that another of its inputs has overwritten.
[[noreturn]] void throw_circle(const Draft& draft, const std::vector<Index>& open) {
  for (Index s = 0; s < draft.steps.size(); ++s) {
    if (open[s] == 0) continue;
    const DraftStep& step = draft.steps[s];
    for (const DraftOperand& input : draft.inputs_of(step)) {
      if (input.value.memory == kNone) continue;
      for (const Update& update : draft.memories[input.value.memory].updates) {
        if (update.version <= input.version || open[update.step] == 0 || update.step >= s) continue;
        const Node& by = *draft.steps[update.step].node;
        refuse(step.node->op->name,
               "the backward pass needs a " + draft.specs[input.spec].to_string() + " at version " +
                   std::to_string(input.version) +
                   ", but also what depends on the update in place (" + by.op->name + ", " +
                   by.site.file + ":" + std::to_string(by.site.line) + ") that makes version " +
                   std::to_string(update.version) +
                   " of it; copy() what is needed of the older version",
               step.node->site);
      }
    }
  }
  refuse(draft.what, "the updates in place of this run wait for one another");
}

// Orders the steps along the edges; among ready steps the least key goes first.
template <class Key>
std::vector<Index> sorted(const Draft& draft, Key key) {
  std::vector<Index> open(draft.steps.size(), 0);  // number of steps that each still waits for
  for (const Index to : draft.edges) ++open[to];
  using Entry = std::pair<Index, Index>;  // key, step
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (Index s = 0; s < draft.steps.size(); ++s)
    if (open[s] == 0) ready.emplace(key(s), s);
  std::vector<Index> order;
  order.reserve(draft.steps.size());
  while (!ready.empty()) {
    const Index step = ready.top().second;
    ready.pop();
    order.push_back(step);
    for (const Index next : draft.waiting_for(step))
      if (--open[next] == 0) ready.emplace(key(next), next);
  }
  if (order.size() < draft.steps.size()) throw_circle(draft, open);
  return order;
}

bool updates_state(const Draft& draft, const DraftStep& step) {
  if (step.node->op->updates.empty()) return false;
  const std::span<const DraftOperand> inputs = draft.inputs_of(step);
  for (std::size_t j = 0; j < inputs.size(); ++j)
    if (step.node->op->updates.has(j) &&
        (inputs[j].value.memory == kNone ||
         draft.memories[inputs[j].value.memory].kind == Location::arena))
      return false;
  return true;
}

// Whether a step updates state with what a step of the forward pass makes beside other values, as
// batch_norm makes its running statistics.
bool takes_by_product(const Draft& draft, const DraftStep& step) {
  if (!updates_state(draft, step)) return false;
  return std::ranges::any_of(draft.inputs_of(step), [&](const DraftOperand& input) {
    if (input.value.memory == kNone) return false;
    const Index producer = draft.memories[input.value.memory].producer;
    return producer != kNone && draft.steps[producer].outputs > 1 &&
           draft.steps[producer].node->category != memory::Category::gradient;
  });
}

// Steps to run as early as possible: updates of state, and the scalars made of scalars alone that
// they wait for (counts, rates, whether an accumulated update is due).
std::vector<bool> urgent_steps(const Draft& draft, const std::vector<Index>& order) {
  constexpr std::size_t kScalarBytes = 16;
  std::vector<bool> is_scalar(draft.steps.size(), true), urgent(draft.steps.size(), false);
  for (const Index s : order) {
    for (const DraftOperand& output : draft.outputs_of(draft.steps[s]))
      if (draft.specs[output.spec].bytes() > kScalarBytes) is_scalar[s] = false;
    if (is_scalar[s]) continue;
    for (const Index next : draft.waiting_for(s)) is_scalar[next] = false;
  }
  for (auto s = order.rbegin(); s != order.rend(); ++s) {
    urgent[*s] = updates_state(draft, draft.steps[*s]);
    if (!is_scalar[*s]) continue;
    for (const Index next : draft.waiting_for(*s)) urgent[*s] = urgent[*s] || urgent[next];
  }
  return urgent;
}

}  // namespace

Schedule order(const Draft& draft, bool updates_early, bool by_products_late) {
  Schedule schedule;
  schedule.updates_early = updates_early;
  schedule.order = sorted(draft, [](Index s) { return s; });
  if (!updates_early && !by_products_late) return schedule;
  std::vector<bool> urgent(draft.steps.size(), false);
  if (updates_early) urgent = urgent_steps(draft, schedule.order);
  const auto last = static_cast<Index>(draft.steps.size());
  schedule.order = sorted(draft, [&](Index s) {
    if (by_products_late && takes_by_product(draft, draft.steps[s])) return last;
    return urgent[s] ? 0 : s;
  });
  return schedule;
}

}  // namespace ebb::detail
