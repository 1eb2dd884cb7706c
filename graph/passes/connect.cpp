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

void connect(Form& form) {
  std::vector<std::pair<Index, Index>> edges;  // from, to
  const auto wait = [&](Index from, Index to) {
    if (from != kNone && from != to) edges.emplace_back(from, to);
  };
  for (Index s = 0; s < form.steps.size(); ++s) {
    const FormStep& step = form.steps[s];
    const std::span<const FormOperand> inputs = form.inputs_of(step);
    for (std::size_t j = 0; j < inputs.size(); ++j) {
      if (inputs[j].value.memory == kNone) continue;
      const FormMemory& memory = form.memories[inputs[j].value.memory];
      // An update reads the version before the one it makes, so reads and updates are one case.
      const std::size_t next = first_above(memory.updates, inputs[j].version);
      wait(next > 0 ? memory.updates[next - 1].step : memory.producer, s);
      if (next < memory.updates.size()) wait(s, memory.updates[next].step);
    }
  }
  form.first_edge.assign(form.steps.size() + 1, 0);
  for (const auto& [from, to] : edges) ++form.first_edge[from + 1];
  for (std::size_t s = 0; s < form.steps.size(); ++s) form.first_edge[s + 1] += form.first_edge[s];
  form.edges.resize(edges.size());
  std::vector<Index> at(form.first_edge.begin(), form.first_edge.end() - 1);
  for (const auto& [from, to] : edges) form.edges[at[from]++] = to;
}

}  // namespace ebb::detail
