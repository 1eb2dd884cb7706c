#include "ebb/optim/detail/step.h"

#include <algorithm>
#include <unordered_set>

#include "ebb/core/error.h"
#include "ebb/core/tensor_impl.h"

namespace ebb::optim {

using ebb::detail::message;

namespace {

// A with_updates node takes this many updates; more are chained.
constexpr std::size_t kUpdatesPerNode = 16;

// An in-place update of a leaf is no part of its history.
Tensor written(const Tensor& parameter) {
  return parameter.is_symbolic() ? parameter : parameter.detach();
}

std::unordered_set<const Node*> nodes_below(const Tensor& loss) {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> open;
  const auto visit = [&](const Node* node) {
    if (node && seen.insert(node).second) open.push_back(node);
  };
  visit(loss.impl()->node.get());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (const Node::Source& source : node->inputs) visit(source.producer.get());
  }
  return seen;
}

}  // namespace

Targets parameters_below(const Tensor& loss, const Parameters& parameters, const char* what,
                         CallSite site) {
  if (!loss.defined()) throw Error(message(what, "of a tensor that holds nothing", site));
  if (loss.is_symbolic() != parameters.is_symbolic())
    throw Error(message(what,
                        std::string("the loss is ") + loss.to_string() + ", but the parameters " +
                            (parameters.is_symbolic() ? "belong to a graph" : "are concrete"),
                        site));
  const std::unordered_set<const Node*> below = nodes_below(loss);
  Targets targets;
  for (const Parameters::Entry& entry : parameters.entries())
    if (below.contains(entry.tensor.impl()->node.get())) targets.push_back(&entry);
  if (targets.empty())
    throw Error(message(what,
                        "the loss, " + loss.to_string() + ", depends on none of the " +
                            std::to_string(parameters.entries().size()) +
                            " parameters (was it computed under NoGrad, or differentiated "
                            "already?)",
                        site));
  return targets;
}

Tensor with_all_updates(Tensor loss, std::span<const Tensor> updates, CallSite site) {
  while (!updates.empty()) {
    const std::size_t count = std::min(updates.size(), kUpdatesPerNode);
    loss = ebb::detail::with_updates(loss, updates.first(count), site);
    updates = updates.subspan(count);
  }
  return loss;
}

Step::Step(const Optimizer& optimizer, const Parameters& parameters, Targets targets,
           std::vector<SlotRequest> further, CallSite site)
    : optimizer_(optimizer),
      parameters_(parameters),
      targets_(std::move(targets)),
      site_(site),
      slots_before_(parameters.slots().size()) {
  const Rule& rule = optimizer.rule();
  const std::string name = rule.name();
  std::vector<SlotRequest> requests;
  for (const Parameters::Entry* target : targets_)
    for (const char* slot : rule.slots())
      requests.push_back({target->name + '/' + name + '.' + slot,
                          {target->tensor.dtype(), target->tensor.shape()}});
  requests.push_back({name + "/step", {DType::i64, {}}});
  first_further_ = requests.size();
  requests.insert(requests.end(), std::make_move_iterator(further.begin()),
                  std::make_move_iterator(further.end()));
  slots_ = parameters.find_or_make_slots(requests, site);
}

Step::~Step() {
  if (writes_) return;
  slots_.clear();
  parameters_.drop_slots_after(slots_before_);
}

Tensors Step::gradients_of(const Tensor& loss) const {
  Tensors inputs;
  for (const Parameters::Entry* target : targets_) inputs.push_back(target->tensor);
  return gradients(loss, inputs, {}, site_.file, site_.line);
}

void Step::prepare() {
  rate_ = optimizer_.learning_rate().after(slots_[first_further_ - 1], site_);
}

std::vector<Tensor> Step::update(const Tensors& gradients, const ebb::detail::Gate& gate) {
  begin_writing();
  const std::size_t per_target = optimizer_.rule().slots().size();
  const Tensor step = ebb::detail::increment(slots_[first_further_ - 1], 1, gate.ready, site_);
  std::vector<Tensor> updates{step};
  for (std::size_t i = 0; i < targets_.size(); ++i)
    updates.push_back(
        optimizer_.rule().update({.parameter = written(targets_[i]->tensor),
                                  .gradient = gradients[i],
                                  .slots = {slots_.data() + i * per_target, per_target},
                                  .step = step,
                                  .rate = rate_,
                                  .gate = gate,
                                  .site = site_}));
  return updates;
}

}  // namespace ebb::optim
