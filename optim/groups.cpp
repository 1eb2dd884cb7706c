#include "ebb/optim/groups.h"

#include <deque>
#include <unordered_set>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/random/random.h"
#include "ebb/optim/detail/optimizer_step.h"

namespace ebb::optim {

Tensor minimize(const Tensor& given, const std::vector<ParameterGroup>& groups, CallSite site) {
  const ebb::detail::CallScope at(site);
  // A function called when memory is short may give up the caller's handle.
  const Tensor loss = given;
  if (groups.empty()) fail("minimize", "takes one group of parameters or more");
  std::deque<OptimizerStep> steps;
  Tensors inputs;
  std::unordered_set<const Node*> seen;
  NodesBelow below;
  for (const auto& [parameters, optimizer] : groups) {
    Targets targets = trained_below(loss, parameters, "minimize", below);
    if (targets.empty()) continue;
    for (const std::size_t target : targets) {
      const Parameters::Entry& entry = parameters.entries()[target];
      require_unseen(entry, seen);
      inputs.push_back(entry.tensor);
    }
    steps.emplace_back(optimizer, parameters, std::move(targets));
  }
  if (steps.empty()) fail_for_frozen("minimize", "parameter of the groups", loss);
  const Tensors all = ebb::detail::gradients_for("minimize", loss, inputs);
  std::vector<Tensors> of_each;
  std::size_t next = 0;
  for (OptimizerStep& step : steps) {
    Tensors& own = of_each.emplace_back();
    for (std::size_t i = 0; i < step.size(); ++i) own.push_back(all[next++]);
    step.prepare({}, [&](std::size_t i) { return own[i]; });
  }
  const Tensor value = value_before_step(loss);
  const std::vector<Tensor> updates = commit([&] {
    std::vector<Tensor> all;
    for (std::size_t i = 0; i < steps.size(); ++i)
      for (Tensor& update : steps[i].queue(of_each[i])) all.push_back(std::move(update));
    return all;
  });
  return loss.is_symbolic() ? with_all_updates(value, updates) : value;
}

}  // namespace ebb::optim
