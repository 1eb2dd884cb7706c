// Parameters in checkpoint files.
#include <algorithm>
#include <set>

#include "ebb/core/base/error.h"
#include "ebb/core/base/nearest.h"
#include "ebb/core/device/host_bytes.h"
#include "ebb/core/parameters/checkpoint.h"
#include "ebb/core/parameters/parameters_state.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/core/tensor/trace.h"

namespace ebb {

using detail::in_double_quotes;

namespace {

// Names of all scopes in a set: "encoder", "encoder.0".
std::vector<std::string> scopes_of(const Parameters& set) {
  std::set<std::string> scopes;
  for (const auto* list : {&set.entries(), &set.states()})
    for (const Parameters::Entry& entry : *list)
      for (std::size_t dot = entry.name.find('.'); dot != std::string::npos;
           dot = entry.name.find('.', dot + 1))
        scopes.insert(entry.name.substr(0, dot));
  return {scopes.begin(), scopes.end()};
}

}  // namespace

void detail::require_any(const Parameters& parameters, const char* what) {
  require_own(parameters, what);
  if (!parameters.entries().empty() || !parameters.states().empty()) return;
  const std::string& prefix = parameters.prefix();
  const std::string name = prefix.substr(0, std::max<std::size_t>(prefix.size(), 1) - 1);
  const Parameters set = parameters.root();
  if (!name.empty() && name.size() >= set.prefix().size() &&
      set.contains(name.substr(set.prefix().size()))) {
    const std::size_t dot = name.rfind('.');
    refuse(what, in_double_quotes(name) + " is a parameter, not a scope; it is in " +
                     (dot == name.npos ? "the whole set"
                                       : "the scope " + in_double_quotes(name.substr(0, dot))));
  }
  const std::vector<std::string> scopes = scopes_of(set);
  refuse(what, "there are no parameters" +
                   (prefix.empty() ? "" : " whose names begin with " + in_double_quotes(prefix)) +
                   "; " +
                   (scopes.empty() ? "declare them first, by making the model"
                                   : "the scopes that have some are " + nearest(name, scopes)));
}

void Parameters::save_with(const std::string& file, const Resumable* loader, CallSite site) const {
  const detail::CallSiteScope scope(site);
  detail::refuse_while_tracing("save", detail::entry());
  state_->require_values("save");
  detail::require_any(*this, "save");
  std::vector<detail::SavedValue> saved;
  std::vector<HostView> values;
  for (const auto* list : {&entries(), &states(), &slots()})
    for (const Entry& entry : *list) {
      const Tensor here = detail::stored(entry.tensor);
      const detail::TensorImpl& impl = *here.impl();
      detail::require_whole(*impl.storage, "save", detail::entry());
      values.push_back(impl.storage->view(impl.offset, impl.spec.bytes()));
      saved.push_back({{entry.name, impl.spec, values.back().data()}});
      if (state_->is_shared(entry.name)) saved.back().whole = state_->whole_of(entry.name).shape();
    }
  detail::write_checkpoint(
      file, saved, *state_->device,
      prefix_ == state_->root ? detail::RandomState::saved : detail::RandomState::left_out, loader,
      state_->world);
}

void Parameters::load_with(const std::string& file, Resumable* loader,
                           const RestoreOptions& options, CallSite site) const {
  const detail::CallSiteScope scope(site);
  detail::refuse_while_tracing("load", detail::entry());
  state_->require_concrete("load");
  detail::require_any(*this, "load");
  const safetensors::File checkpoint = detail::open_checkpoint(file, *state_->device);
  Resumable::Position position;
  if (loader) position = detail::loader_position(checkpoint, file, *loader);
  const auto require_equal = [&](const std::string& name, const Spec& here, const Spec& there) {
    if (!(there == here))
      detail::refuse<FileError>("load", in_double_quotes(name) + " is " + there.to_string() +
                                            " in " + file + ", but " + here.to_string() + " here");
  };
  // Whether a slot of the file that is not here yet belongs here: beside a parameter of ours, or as
  // a count of an optimizer over a scope that has some.
  const auto belongs_here = [&](const std::string& slot) {
    const std::string owner = slot.substr(0, slot.find('/'));
    if (state_->parameters.find(owner)) return true;
    if (checkpoint.find(owner)) return false;
    const std::string scope = owner.substr(0, owner.rfind('.') + 1);
    return std::ranges::any_of(state_->parameters.all(),
                               [&](const Entry& entry) { return entry.name.starts_with(scope); });
  };

  // Values to write. Everything is read before anything is written, so that a file that fails
  // half-way changes nothing.
  std::vector<SlotRequest> values, missing;
  for (const auto* list : {&entries(), &states()})
    for (const Entry& here : *list) {
      const Spec& spec = here.tensor.impl()->spec;
      const safetensors::File::Entry* there = checkpoint.find(here.name);
      if (!there)
        detail::refuse<FileError>(
            "load", file + " has no parameter " + in_double_quotes(here.name) + ", which is " +
                        spec.to_string() + " here; " + detail::names_in(checkpoint, here.name));
      require_equal(here.name, spec, there->spec);
      values.push_back({here.name, {spec.dtype, state_->shape_here(here.name, spec.shape)}});
    }
  if (options.slots) {
    for (const Entry& here : slots()) values.push_back({here.name, here.tensor.impl()->spec});
    for (const safetensors::File::Entry& there : checkpoint.entries()) {
      if (!detail::is_slot(there.name) || !there.name.starts_with(prefix_)) continue;
      Spec spec = there.spec;
      if (state_->is_shared(there.name)) {
        const Tensor& owner = state_->whole_of(there.name);
        require_equal(there.name, {spec.dtype, owner.shape()}, spec);
        spec.shape = state_->shape_here(there.name, owner.shape());
      }
      if (const Tensor* here = state_->slots.find(there.name)) {
        require_equal(there.name, here->impl()->spec, spec);
      } else if (belongs_here(there.name)) {
        missing.push_back({there.name, there.spec});
        values.push_back({there.name, spec});
      }
    }
  }

  HostBytes bytes;
  if (!state_->device->is_simulated()) {
    std::size_t total = 0;
    for (const SlotRequest& value : values) total += value.spec.bytes();
    bytes = HostBytes(total, "load", "a copy of a checkpoint's values, before any is written");
    std::byte* to = bytes.data();
    for (const SlotRequest& value : values) {
      if (checkpoint.find(value.name))
        detail::read_checkpoint(checkpoint, value.name, to,
                                state_->is_shared(value.name) ? &*state_->world : nullptr);
      else
        std::fill_n(to, value.spec.bytes(), std::byte{});  // a slot that the file lacks
      to += value.spec.bytes();
    }
  }
  find_or_make_slots(missing, {});
  std::size_t at = 0;
  for (const SlotRequest& value : values) {
    const Tensor* tensor = state_->find_value(value.name);
    if (!tensor) tensor = state_->slots.find(value.name);
    detail::write_state(*detail::stored(*tensor).impl(),
                        state_->device->is_simulated() ? nullptr : bytes.data() + at);
    at += value.spec.bytes();
  }
  if (prefix_ == state_->root) detail::restore_generator(checkpoint);
  if (loader) loader->resume(position);
}

}  // namespace ebb
