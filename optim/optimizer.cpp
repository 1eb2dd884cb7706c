#include "ebb/optim/optimizer.h"

#include <deque>
#include <unordered_set>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/collective.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/optim/detail/optimizer_step.h"
#include "ebb/optim/detail/options.h"
#include "ebb/optim/detail/reduction.h"
#include "ebb/optim/groups.h"

namespace ebb::optim {

namespace {

// Refuses names that would make slot names like "hidden.weight/head.adam:slow.velocity" ambiguous.
void require_plain(const char* what, const std::string& name) {
  if (name.find_first_of("/.:") != std::string::npos)
    refuse("optimizer", "\"" + name + "\" cannot name " + what + ": it has a '/', '.' or ':'");
}

// Throws unless `gradient` has the parameter's dtype, shape and device.
void check_gradient_of(const Parameters::Entry& entry, const Tensor& gradient) {
  const Tensor& parameter = entry.tensor;
  const bool fits = gradient.dtype() == parameter.dtype() &&
                    ebb::detail::may_equal(gradient.shape(), parameter.shape()) &&
                    (parameter.is_symbolic() || ebb::detail::tape_mode().trace ||
                     (!gradient.is_symbolic() && gradient.device() == parameter.device()));
  if (!fits)
    refuse("apply", gradient.to_string() + " is no gradient of '" + entry.name + "', which is " +
                        parameter.to_string());
}

// Throws where a backward pass that failed has left a partial .grad() behind.
void refuse_partial(const char* what, const Parameters::Entry& entry) {
  if (ebb::detail::has_partial_gradient(entry.tensor))
    refuse(what, "the gradient of '" + entry.name +
                     "' is incomplete, since a backward pass failed half-way; call zero_grad() and "
                     "repeat the passes that were to be accumulated");
}

// Whether `gradient` is the .grad() of this parameter, or a view of it. A compiled step refuses
// partial ones itself.
bool is_own_gradient(const Parameters::Entry& entry, const Tensor& gradient) {
  if (gradient.is_symbolic() || !entry.tensor.grad().defined()) return false;
  return entry.tensor.grad().impl()->storage == gradient.impl()->storage;
}

// What a step is made with: gradients, or their sums over a world with a gate that divides them.
struct Averaged {
  Tensors sums;
  Gate gate = {};
  Tensor loss = {};  // of the world

  Tensor mean(const Tensor& sum) const {
    return gate.defined() ? sum / cast(gate.count, sum.dtype()) : sum;
  }
};

// Sums over the world: of the loss and its gradients with respect to `inputs`, which are those
// entries', while these are computed; or of gradients that are there, last parameters first.
Averaged average(const distributed::World& world, const Entries& entries, const Tensor& loss,
                 const Tensors& inputs, Tensors gradients = {}) {
  const Tensor rows = ebb::detail::rows_in_use(loss.defined() ? loss : gradients[0], world);
  Summed summed =
      sum_over(world, entries, rows, loss, {}, [&](const ebb::detail::TakeGradient& take) {
        if (loss.defined()) ebb::detail::gradients_for("minimize", loss, inputs, {}, take);
        for (std::size_t i = gradients.size(); i-- > 0;) take(i, std::exchange(gradients[i], {}));
      });
  // The gate is closed where no rank has rows.
  return {std::move(summed.sums),
          {ebb::detail::at_least(summed.count, 1), summed.count},
          std::move(summed.loss)};
}

std::vector<Tensor> make_step(const Optimizer& optimizer, const Parameters& parameters,
                              Targets targets, Tensors gradients) {
  Entries entries;
  for (const std::size_t target : targets) entries.push_back(&parameters.entries()[target]);
  OptimizerStep step(optimizer, parameters, std::move(targets));
  const std::optional<distributed::World>& world = optimizer.world();
  return with_ranks(world, [&] {
    const Averaged averaged = world ? average(*world, entries, {}, {}, std::move(gradients))
                                    : Averaged{std::move(gradients)};
    step.prepare(averaged.gate, [&](std::size_t i) { return averaged.mean(averaged.sums[i]); });
    return commit([&] { return step.queue(averaged.sums); });
  });
}

// The step of all groups. Makes the slots before the backward pass, so that the first step has the
// same peak as all others.
Tensor minimize_groups(const Tensor& given, const std::vector<ParameterGroup>& groups) {
  // A function called when memory is short may give up the caller's handle.
  const Tensor loss = given;
  std::deque<OptimizerStep> steps;
  Tensors inputs;
  Entries entries;
  std::unordered_set<const Node*> seen;
  NodesBelow below;
  for (const auto& [parameters, optimizer] : groups) {
    Targets targets = trained_below(loss, parameters, "minimize", below);
    if (targets.empty()) continue;
    for (const std::size_t target : targets) {
      const Parameters::Entry& entry = parameters.entries()[target];
      require_unseen(entry, seen);
      inputs.push_back(entry.tensor);
      entries.push_back(&entry);
    }
    steps.emplace_back(optimizer, parameters, std::move(targets));
  }
  if (steps.empty()) fail_for_frozen(loss);
  const std::optional<distributed::World>& world = world_of(groups, "minimize");
  return with_ranks(world, [&] {
    const Averaged averaged = world
                                  ? average(*world, entries, loss, inputs)
                                  : Averaged{ebb::detail::gradients_for("minimize", loss, inputs)};
    std::vector<Tensors> of_each;
    std::size_t next = 0;
    for (OptimizerStep& step : steps) {
      Tensors& own = of_each.emplace_back();
      for (std::size_t i = 0; i < step.size(); ++i) own.push_back(averaged.sums[next++]);
      step.prepare(averaged.gate, [&](std::size_t i) { return averaged.mean(own[i]); });
    }
    const Tensor value = value_before_step(world ? averaged.loss : loss);
    const std::vector<Tensor> updates = commit([&] {
      std::vector<Tensor> all;
      for (std::size_t i = 0; i < steps.size(); ++i)
        for (Tensor& update : steps[i].queue(of_each[i])) all.push_back(std::move(update));
      return all;
    });
    return with_all_updates(value, updates);
  });
}

}  // namespace

Optimizer::Optimizer(std::shared_ptr<const Rule> rule, LearningRate learning_rate, std::string name,
                     const Clip& clip, CallSite site,
                     const std::optional<distributed::World>& world)
    : rule_(std::move(rule)),
      learning_rate_(std::move(learning_rate)),
      name_(std::move(name)),
      clip_(clip),
      world_(world) {
  const ebb::detail::CallSiteScope at(site);
  if (!rule_) refuse("optimizer", "takes a rule, not a null pointer");
  if (!rule_->name() || *rule_->name() == '\0') refuse("optimizer", "a rule needs a name");
  require_plain("a rule", rule_->name());
  require_plain("an optimizer", name_);
  for (const std::string slot : rule_->slots()) {
    require_plain("a slot", slot);
    if (slot.empty() || slot == "accumulated")
      refuse("optimizer", "\"" + slot + "\" cannot name a slot");
  }
  require_not_negative("clip", "value", clip.value);
  require_not_negative("clip", "norm", clip.norm);
  require_not_negative("clip", "global_norm", clip.global_norm);
  if ((clip.value > 0) + (clip.norm > 0) + (clip.global_norm > 0) > 1)
    refuse("clip", "takes one of value, norm and global_norm");
}

Tensor Optimizer::minimize(const Tensor& loss, const Parameters& parameters, CallSite site) const {
  const ebb::detail::CallScope at(site);
  return minimize_groups(loss, {{parameters, *this}});
}

Tensor minimize(const Tensor& loss, const std::vector<ParameterGroup>& groups, CallSite site) {
  const ebb::detail::CallScope at(site);
  if (groups.empty()) refuse("minimize", "takes one group of parameters or more");
  return minimize_groups(loss, groups);
}

Tensor Optimizer::apply(const Tensors& from, const Parameters& parameters, CallSite site) const {
  const ebb::detail::CallScope at(site);
  // A function called when memory is short may give up the caller's handle.
  const Tensors gradients = from;
  const std::vector<Parameters::Entry>& entries = parameters.entries();
  if (gradients.size() != entries.size())
    refuse("apply", "takes a gradient for each of the " + std::to_string(entries.size()) +
                        " parameters, not " + std::to_string(gradients.size()));
  Targets targets;
  WrittenMemory written;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!gradients[i].defined() || !parameters.is_trainable(entries[i])) continue;
    check_gradient_of(entries[i], gradients[i]);
    if (is_own_gradient(entries[i], gradients[i])) refuse_partial("apply", entries[i]);
    targets.push_back(i);
    written.add(entries[i].tensor);
  }
  if (targets.empty())
    refuse("apply", "no gradient is defined (those of frozen parameters do not count)");
  // A gradient may be a parameter itself, which this step is about to change.
  Tensors given;
  for (const std::size_t i : targets)
    given.push_back(written.holds(gradients[i]) ? copy(gradients[i])
                    : gradients[i].shape().is_open()
                        ? ebb::detail::reshape_like(gradients[i], entries[i].tensor)
                        : gradients[i]);
  const std::vector<Tensor> updates =
      make_step(*this, parameters, std::move(targets), std::move(given));
  if (!parameters.is_symbolic()) return updates[0];
  return with_all_updates(updates[0], std::span(updates).subspan(1));
}

void Optimizer::step(const Parameters& parameters, CallSite site) const {
  const ebb::detail::CallScope at(site);
  if (parameters.is_symbolic())
    refuse("step", "a graph's parameters have no .grad(); use minimize(), and fetch its result");
  const std::vector<Parameters::Entry>& entries = parameters.entries();
  Targets targets;
  Tensors gradients;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Tensor& gradient = entries[i].tensor.grad();
    if (!gradient.defined() || !parameters.is_trainable(entries[i])) continue;
    refuse_partial("step", entries[i]);
    targets.push_back(i);
    gradients.push_back(gradient);
  }
  if (targets.empty())
    refuse(
        "step",
        "no parameter has a gradient (frozen ones do not count); call backward() on a loss first");
  make_step(*this, parameters, std::move(targets), std::move(gradients));
}

}  // namespace ebb::optim
