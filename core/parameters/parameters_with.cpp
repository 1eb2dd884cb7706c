// Parameters::with(), which puts other tensors in place of a model's parameters, and
// set_trainable().
#include "ebb/core/autodiff/attempt.h"
#include "ebb/core/base/error.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/parameters/parameters_state.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb {

using detail::in_double_quotes;

namespace {

// Dtypes must be equal; a size that is open until a session runs fits any.
bool fits(const Tensor& tensor, const Spec& spec) {
  return tensor.dtype() == spec.dtype && detail::may_equal(tensor.shape(), spec.shape);
}

}  // namespace

void detail::require_own(const Parameters& parameters, const char* what) {
  if (parameters.state_->has_substitutes)
    refuse(what,
           "these parameters are substitutes, which with() gave their names: it takes the "
           "parameters themselves");
  Parameters::State::note_use(parameters.state_);
}

Tensors Parameters::tensors() const {
  Tensors tensors;
  for (const Entry& entry : entries()) tensors.push_back(entry.tensor);
  return tensors;
}

void Parameters::set_trainable(bool trainable, CallSite site) const {
  const detail::CallSiteScope at(site);
  detail::require_any(*this, "set_trainable");
  // Noted once: a copy of the names for each layer frozen would take quadratic time.
  if (detail::Attempt::has_to_note(&state_->frozen)) {
    const std::weak_ptr<State> set = state_;  // may go before the attempt ends
    detail::Attempt::note_declaration(&state_->frozen, [set, frozen = state_->frozen]() mutable {
      if (const auto still = set.lock()) still->frozen.swap(frozen);
    });
  }
  for (const Entry& entry : entries())
    if (trainable)
      state_->frozen.erase(entry.name);
    else
      state_->frozen.insert(entry.name);
}

bool Parameters::is_trainable(const Entry& entry) const noexcept {
  return state_->frozen.empty() || !state_->frozen.contains(entry.name);
}

Parameters Parameters::with(const Tensors& substitutes, CallSite site) const {
  const detail::CallSiteScope at(site);
  const std::vector<Entry>& originals = entries();
  if (substitutes.size() != originals.size())
    detail::refuse("with", "takes a tensor for each of the " + std::to_string(originals.size()) +
                               " parameters, not " + std::to_string(substitutes.size()));
  std::vector<Entry> named;
  for (std::size_t i = 0; i < originals.size(); ++i) {
    const Spec& spec = originals[i].tensor.impl()->spec;
    if (!substitutes[i].defined() || !fits(substitutes[i], spec))
      detail::refuse<ShapeError>("with", substitutes[i].to_string() + " cannot stand for " +
                                             in_double_quotes(originals[i].name) + ", which is " +
                                             spec.to_string());
    const auto& storage = substitutes[i].impl()->storage;
    if (storage && state_->device && !(storage->device() == *state_->device))
      detail::refuse("with", substitutes[i].to_string() + " cannot stand for " +
                                 in_double_quotes(originals[i].name) + ", which is on " +
                                 (storage->device().name() == state_->device->name()
                                      ? "another device of that name"
                                      : state_->device->name() + "; move it with Tensor::to"));
    named.push_back({originals[i].name, substitutes[i]});
  }
  auto state = std::make_shared<State>();
  state->device = state_->device;
  state->graph = state_->graph;
  state->dtype = state_->dtype;
  state->root = state_->root;
  state->has_substitutes = true;
  state->frozen = state_->frozen;
  state->parameters.add(std::move(named));
  state->states.add(states());
  return Parameters(std::move(state), prefix_);
}

Tensor Parameters::find_substitute(const std::string& full, const Spec& spec, bool trained) const {
  const Tensor* found = (trained ? state_->parameters : state_->states).find(full);
  if (!found)
    detail::refuse("parameters", "there is no " + in_double_quotes(full) + " to stand in for; " +
                                     state_->names_below(prefix_, full.substr(prefix_.size())));
  if (!fits(*found, spec))
    detail::refuse<ShapeError>("parameters", in_double_quotes(full) + " is " + found->to_string() +
                                                 ", but " + spec.to_string() + " is declared");
  return *found;
}

}  // namespace ebb
