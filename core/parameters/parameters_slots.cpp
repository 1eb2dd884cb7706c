// Slots: state that optimizers keep with parameters.
#include <unordered_set>

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/collective.h"
#include "ebb/core/parameters/parameters_state.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/core/tensor/trace.h"

namespace ebb {

using detail::in_double_quotes;
using detail::NamedTensors;

namespace {

// Checks a request against the existing slot of that name. Throws Error.
void check_slot(const std::string& name, const Spec& wanted, const Tensor& slot) {
  const Spec& spec = slot.impl()->spec;
  if (!(spec == wanted))
    detail::refuse("slots", "the slot " + in_double_quotes(name) + " is " + spec.to_string() +
                                ", but " + wanted.to_string() + " is wanted" +
                                (spec.dtype == wanted.dtype
                                     ? ""
                                     : "; state is not converted: ask for the dtype that it has, "
                                       "or give the optimizer another name"));
}

}  // namespace

Tensor Parameters::State::make_slot(const SlotRequest& request, CallSite site) const {
  const memory::Category category = detail::slot_category(request.name);
  if (graph) {
    VariableDeclaration slot{.name = request.name,
                             .spec = request.spec,
                             .initializer = initializers::zeros(),
                             .seed = seed,
                             .category = category,
                             .site = site,
                             .world = world};
    if (is_shared(request.name)) slot.whole = owner_of(request.name)->shape();
    return graph->declare(slot);
  }
  Tensor slot = detail::allocate(request.spec, *device, category, detail::tag("slot", site));
  slot.impl()->storage->make_state(site.layer);
  slot.impl()->storage->fill(0);
  return slot;
}

Tensors Parameters::find_or_make_slots(const SlotsBeside& beside,
                                       std::span<const SlotRequest> others, CallSite site) const {
  const detail::CallSiteScope at(site);
  detail::require_own(*this, "optimizer");
  State& state = *state_;
  struct Missing {
    std::size_t at;      // in the result
    std::size_t* place;  // where to note its position, or null
    SlotRequest request;
  };
  Tensors found;
  std::vector<Missing> missing;
  found.reserve(beside.parameters.size() * beside.slots.size() + others.size());
  const auto find = [&](const std::string& name, const Spec& spec, std::size_t* place) {
    const std::size_t position = state.slots.position(name);
    const Tensor* slot =
        position == NamedTensors::kNone ? nullptr : &state.slots.all()[position].tensor;
    if (slot) check_slot(name, spec, *slot);
    if (!slot) missing.push_back({found.size(), place, {name, spec}});
    if (slot && place) *place = position;
    found.push_back(slot ? *slot : Tensor());
  };

  std::vector<std::vector<std::size_t>*> tables;
  for (const SlotBeside& slot : beside.slots) {
    auto table = state.slots_beside.find(slot.name);
    if (table == state.slots_beside.end()) table = state.slots_beside.try_emplace(slot.name).first;
    table->second.resize(state.parameters.all().size(), NamedTensors::kNone);
    tables.push_back(&table->second);
  }
  const std::vector<std::size_t>* rows =
      prefix_.empty() ? nullptr : &state.parameters.part(prefix_).positions;
  for (const std::size_t parameter : beside.parameters) {
    const std::size_t row = rows ? (*rows)[parameter] : parameter;
    const Entry& entry = state.parameters.all()[row];
    for (std::size_t i = 0; i < tables.size(); ++i) {
      const SlotBeside& slot = beside.slots[i];
      std::size_t& place = (*tables[i])[row];
      const Tensor* known =
          place == NamedTensors::kNone ? nullptr : &state.slots.all()[place].tensor;
      if (known && known->dtype() == slot.dtype) {
        found.push_back(*known);
        continue;
      }
      const std::string name = entry.name + '/' + slot.name;
      find(name, {slot.dtype, state.shape_here(name, entry.tensor.impl()->spec.shape)}, &place);
    }
  }
  for (const SlotRequest& request : others) {
    if (!detail::is_slot(request.name))
      detail::refuse("slots",
                     in_double_quotes(request.name) + " cannot name a slot: it has no '/'");
    if (state.is_shared(request.name) &&
        request.spec.shape != state.owner_of(request.name)->shape())
      detail::refuse("slots", "ranks can have shares of slots of their parameter's shape alone; " +
                                  in_double_quotes(request.name) + " is " +
                                  request.spec.to_string());
    find(request.name, {request.spec.dtype, state.shape_here(request.name, request.spec.shape)},
         nullptr);
  }
  if (missing.empty()) return found;

  std::unordered_set<std::string_view> names;
  for (const Missing& slot : missing)
    if (!names.insert(slot.request.name).second)
      detail::refuse("slots", in_double_quotes(slot.request.name) + " is asked for twice");
  std::vector<Entry> made;
  made.reserve(missing.size());
  for (const Missing& slot : missing) {
    const std::string& name = slot.request.name;
    const Tensor* parameter = state.find_value(std::string_view(name).substr(0, name.find('/')));
    site.layer = parameter ? detail::layer_of(*parameter->impl()) : layer_;
    made.push_back({name, state.make_slot(slot.request, site)});
    found[slot.at] = made.back().tensor;
  }
  const std::size_t before = state.slots.all().size();
  state.slots.add(std::move(made));
  for (std::size_t i = 0; i < missing.size(); ++i)
    if (missing[i].place) *missing[i].place = before + i;
  return found;
}

void Parameters::State::note_use(const std::shared_ptr<State>& state) {
  detail::Trace* const trace = detail::tape_mode().trace;
  if (!trace || trace->depends_on(state.get())) return;
  const std::size_t before = state->slots.all().size();
  const auto after = std::make_shared<std::size_t>(before);
  trace->depend({.of = state.get(),
                 .end_trace = [=] { *after = state->slots.all().size(); },
                 .holds =
                     [=, frozen = state->frozen] {
                       return state->slots.all().size() == *after && state->frozen == frozen;
                     },
                 .take_back = [=] { state->drop_slots_after(before); }});
}

const Tensor* Parameters::State::owner_of(std::string_view slot) const noexcept {
  const std::size_t slash = slot.find('/');
  const bool is_beside = slash != slot.npos && slot.find('.', slash) != slot.npos;
  return is_beside ? parameters.find(slot.substr(0, slash)) : nullptr;
}

bool Parameters::State::is_shared(std::string_view slot) const noexcept {
  using distributed::Sharding;
  if (shares_parameters() && parameters.find(slot)) return true;
  if (!world || !owner_of(slot)) return false;
  return world->sharding() >= (detail::slot_category(slot) == memory::Category::gradient
                                   ? Sharding::gradients
                                   : Sharding::optimizer_state);
}

Shape Parameters::State::shape_here(std::string_view slot, const Shape& whole) const noexcept {
  return is_shared(slot) ? share_shape(whole) : whole;
}

Shape Parameters::State::share_shape(const Shape& whole) const noexcept {
  return {detail::share_of(whole.elements(), world->size(), world->rank())};
}

std::size_t Parameters::slot_count() const noexcept { return state_->slots.all().size(); }

void Parameters::drop_slots_after(std::size_t count) const noexcept {
  state_->drop_slots_after(count);
}

void Parameters::State::drop_slots_after(std::size_t count) noexcept {
  if (graph) return;
  slots.shrink(count);
  for (auto& [name, places] : slots_beside)
    for (std::size_t& place : places)
      if (place != NamedTensors::kNone && place >= count) place = NamedTensors::kNone;
}

}  // namespace ebb
