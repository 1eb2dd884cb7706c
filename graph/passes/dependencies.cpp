#include <algorithm>
#include <utility>

#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

// Index of the first update of a version above `version`.
std::size_t first_above(const std::vector<Update>& updates, std::uint32_t version) {
  return static_cast<std::size_t>(
      std::upper_bound(updates.begin(), updates.end(), version,
                       [](std::uint32_t v, const Update& update) { return v < update.version; }) -
      updates.begin());
}

}  // namespace

void add_dependencies(Draft& draft) {
  std::vector<std::pair<Index, Index>> edges;  // from, to
  const auto wait = [&](Index from, Index to) {
    if (from != kNone && from != to) edges.emplace_back(from, to);
  };
  Index last_stateful = kNone;
  for (Index s = 0; s < draft.steps.size(); ++s) {
    const DraftStep& step = draft.steps[s];
    const OpDef& op = *step.node->op;
    if (op.communicates || (op.stateful && op.updates.empty()))
      wait(std::exchange(last_stateful, s), s);
    const std::span<const DraftOperand> inputs = draft.inputs_of(step);
    for (std::size_t j = 0; j < inputs.size(); ++j) {
      if (inputs[j].value.memory == kNone) continue;
      const DraftMemory& memory = draft.memories[inputs[j].value.memory];
      // An update reads the version before the one it makes, so reads and updates are one case.
      const std::size_t next = first_above(memory.updates, inputs[j].version);
      wait(next > 0 ? memory.updates[next - 1].step : memory.producer, s);
      if (next < memory.updates.size()) wait(s, memory.updates[next].step);
    }
  }
  draft.first_edge.assign(draft.steps.size() + 1, 0);
  for (const auto& [from, to] : edges) ++draft.first_edge[from + 1];
  for (std::size_t s = 0; s < draft.steps.size(); ++s)
    draft.first_edge[s + 1] += draft.first_edge[s];
  draft.edges.resize(edges.size());
  std::vector<Index> at(draft.first_edge.begin(), draft.first_edge.end() - 1);
  for (const auto& [from, to] : edges) draft.edges[at[from]++] = to;
}

}  // namespace ebb::detail
