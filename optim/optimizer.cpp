#include "ebb/optim/optimizer.h"

#include "ebb/core/error.h"
#include "ebb/core/reverse.h"
#include "ebb/optim/detail/step.h"

namespace ebb::optim {

Optimizer::Optimizer(std::shared_ptr<const Rule> rule, LearningRate learning_rate)
    : rule_(std::move(rule)), learning_rate_(std::move(learning_rate)) {}

// The slots come before the backward pass, so that the first step's peak is that of all others.
Tensor Optimizer::minimize(const Tensor& loss, const Parameters& parameters, const char* file,
                           unsigned line) const {
  const CallSite site{file, line};
  Step step(*this, parameters, parameters_below(loss, parameters, "minimize", site), {}, site);
  const Tensors gradients = step.gradients_of(loss);
  step.prepare();
  const std::vector<Tensor> updates = step.update(gradients, {});
  return loss.is_symbolic() ? with_all_updates(loss, updates, site) : loss.detach();
}

void Optimizer::step(const Parameters& parameters, const char* file, unsigned line) const {
  const CallSite site{file, line};
  if (parameters.is_symbolic())
    throw Error(ebb::detail::message(
        "step", "a graph's parameters have no .grad(); use minimize(), and fetch its result",
        site));
  Targets targets;
  Tensors gradients;
  for (const Parameters::Entry& entry : parameters.entries()) {
    if (!entry.tensor.grad().defined()) continue;
    if (ebb::detail::has_partial_gradient(entry.tensor))
      throw Error(ebb::detail::message(
          "step",
          "the gradient of '" + entry.name +
              "' is incomplete, since a backward pass failed half-way; call zero_grad() and repeat "
              "the passes that were to be accumulated",
          site));
    targets.push_back(&entry);
    gradients.push_back(entry.tensor.grad());
  }
  if (targets.empty())
    throw Error(ebb::detail::message(
        "step", "no parameter has a gradient; call backward() on a loss first", site));
  Step step(*this, parameters, std::move(targets), {}, site);
  step.prepare();
  step.update(gradients, {});
}

}  // namespace ebb::optim
