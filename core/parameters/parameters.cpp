#include "ebb/core/parameters/parameters.h"

#include <cmath>

#include "ebb/core/autodiff/attempt.h"
#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/base/error.h"
#include "ebb/core/base/nearest.h"
#include "ebb/core/ops/collective.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/parameters/declaring.h"
#include "ebb/core/parameters/parameters_state.h"
#include "ebb/core/tensor/launch_row.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb {

using detail::in_double_quotes;
using detail::is_slot;
using detail::NamedTensors;
using detail::refuse;

void detail::write_state(const TensorImpl& impl, const std::byte* from) {
  Storage& storage = *impl.storage;
  storage.bump_version();
  storage.tear("load");  // until all of it is there
  if (from && impl.spec.bytes() > 0) storage.copy_in(impl.offset, from, impl.spec.bytes());
  storage.mend();
  Attempt::keep(storage);
}

namespace {

// Whether values can be drawn from it. A constant may be anything.
bool is_distribution(const Initializer& initializer) noexcept {
  if (initializer.kind == Initializer::constant) return true;
  return std::isfinite(initializer.a) && std::isfinite(initializer.b) &&
         initializer.b >= (initializer.kind == Initializer::uniform ? initializer.a : 0);
}

std::string to_string(const Initializer& initializer) {
  const std::string a = std::to_string(initializer.a), b = std::to_string(initializer.b);
  if (initializer.kind == Initializer::orthogonal) return "orthogonal with a gain of " + a;
  return initializer.kind == Initializer::uniform
             ? "uniform from " + a + " to " + b
             : "normal with a mean of " + a + " and a deviation of " + b;
}

}  // namespace

void Parameters::State::shrink(std::size_t parameter_count, std::size_t state_count) noexcept {
  if (graph) return;
  for (std::size_t i = parameter_count; i < parameters.all().size(); ++i)
    frozen.erase(parameters.all()[i].name);
  parameters.shrink(parameter_count);
  states.shrink(state_count);
  for (auto& [name, places] : slots_beside)
    if (places.size() > parameter_count) places.resize(parameter_count);
}

void Parameters::State::require_concrete(const char* what) const {
  if (graph)
    detail::refuse(what,
                   "the parameters of a graph have no values: each Session has its own, and "
                   "copies, saves and restores them");
}

void Parameters::State::require_values(const char* what) const {
  require_concrete(what);
  if (device->is_simulated() && !device->runtime().simulation())
    detail::refuse<SimulatedRead>(
        what, "parameters on " + device->name() + " have no values: the device is simulated");
}

const Tensor* Parameters::State::find_value(std::string_view name) const noexcept {
  const Tensor* parameter = parameters.find(name);
  return parameter ? parameter : states.find(name);
}

std::string Parameters::State::names_below(std::string_view prefix, std::string_view wanted) {
  const auto below = [&](std::string_view scope) {
    std::vector<std::string> names;
    for (NamedTensors* named : {&parameters, &states, &slots})
      for (const Entry& entry : named->below(scope))
        names.push_back(entry.name.substr(scope.size()));
    return names;
  };
  const std::vector<std::string> names = below(prefix);
  if (!names.empty()) return "there are " + detail::nearest(wanted, names);
  // Perhaps the scope has another name.
  const std::vector<std::string> all = below({});
  if (all.empty()) return "there are none yet";
  return "there are none, elsewhere " +
         detail::nearest(std::string(prefix) + std::string(wanted), all);
}

std::shared_ptr<Parameters::State> Parameters::make_state(Seed seed,
                                                          const ParametersOptions& options,
                                                          CallSite site) {
  const detail::CallSiteScope at(site);
  if (!is_floating(options.dtype))
    detail::refuse("parameters",
                   std::string("are f32, f64, f16 or bf16, not ") + ebb::name(options.dtype));
  if (is_slot(options.name))
    detail::refuse("parameters",
                   in_double_quotes(options.name) + " cannot name a set: it has a '/'");
  auto state = std::make_shared<State>();
  state->seed = seed;
  state->dtype = options.dtype;
  state->world = options.world;
  if (!options.name.empty()) state->root = options.name + '.';
  return state;
}

Parameters::Parameters(std::shared_ptr<State> state, std::string prefix)
    : state_(std::move(state)), prefix_(std::move(prefix)) {}

Parameters::Parameters(const Device& device, Seed seed, const ParametersOptions& options,
                       CallSite site)
    : state_(make_state(seed, options, site)), prefix_(state_->root) {
  state_->device = device;
}
Parameters::Parameters(detail::Ref<Recorder> graph, Seed seed, const ParametersOptions& options,
                       CallSite site)
    : state_(make_state(seed, options, site)), prefix_(state_->root) {
  state_->graph = std::move(graph);
}
Parameters::Parameters(const Device& device, Seed seed, DType dtype, CallSite site)
    : Parameters(device, seed, ParametersOptions{.dtype = dtype}, site) {}
Parameters::Parameters(detail::Ref<Recorder> graph, Seed seed, DType dtype, CallSite site)
    : Parameters(std::move(graph), seed, ParametersOptions{.dtype = dtype}, site) {}

Parameters Parameters::scope(NameAt at) const {
  if (at.name.empty() || is_slot(at.name))
    refuse("scope", in_double_quotes(at.name) + " cannot name a scope: it is empty or has a '/'",
           at.site);
  return Parameters(state_, prefix_ + std::string(at.name) + '.');
}

Parameters Parameters::root() const { return Parameters(state_, state_->root); }

Tensor Parameters::add(std::string_view name, const Spec& spec, const Initializer& initializer,
                       bool trained, CallSite site) const {
  const detail::CallSiteScope at(site);
  site.layer = layer_;
  State& state = *state_;
  if (name.empty() || is_slot(name))
    detail::refuse("parameters",
                   in_double_quotes(name) + " cannot name a parameter: it is empty or has a '/'");
  const std::string full = prefix_ + std::string(name);
  if (state.has_substitutes) return find_substitute(full, spec, trained);
  if (state.find_value(full))
    detail::refuse("parameters", "there is a parameter " + in_double_quotes(full) +
                                     " already; give each layer a scope() of its own");
  if (spec.shape.is_open())
    detail::refuse<ShapeError>("parameters", "the shape " + spec.shape.to_string() + " of " +
                                                 in_double_quotes(full) + " has an open dimension");
  if (!spec.shape.is_countable())
    detail::refuse<ShapeError>("parameters",
                               in_double_quotes(full) + ": " + detail::too_large(spec.shape));
  if (!is_distribution(initializer))
    detail::refuse("parameters",
                   in_double_quotes(full) + " cannot start " + to_string(initializer));
  const bool starts_at_zero = initializer.kind == Initializer::constant && initializer.a == 0;
  if (!is_floating(spec.dtype) && !starts_at_zero)
    detail::refuse("parameters", in_double_quotes(full) + " is " + spec.to_string() +
                                     ": only floating ones start at other values than zero");
  if (initializer.kind == Initializer::orthogonal && spec.shape.rank() < 2)
    detail::refuse<ShapeError>("parameters", in_double_quotes(full) + " is " + spec.to_string() +
                                                 ": orthogonal values need two axes or more");
  const bool is_shared = trained && state.shares_parameters();
  const Spec here = {spec.dtype, is_shared ? state.share_shape(spec.shape) : spec.shape};
  Tensor tensor;
  if (state.graph) {
    tensor = state.graph->declare({.name = full,
                                   .spec = here,
                                   .initializer = initializer,
                                   .seed = state.seed,
                                   .category = memory::Category::parameter,
                                   .site = site,
                                   .world = state.world,
                                   .whole = is_shared ? std::optional(spec.shape) : std::nullopt});
    if (is_shared)
      tensor = apply_one(whole_op, {tensor}, detail::gathers(*state.world, full, spec.shape), site);
  } else {
    const std::weak_ptr<State> set = state_;  // may go before the attempt ends
    detail::Attempt::note_declaration(&state, [set, parameters = state.parameters.all().size(),
                                               states = state.states.all().size()] {
      if (const auto still = set.lock()) still->shrink(parameters, states);
    });
    tensor = detail::allocate(here, *state.device, memory::Category::parameter,
                              detail::tag(trained ? "parameter" : "state", site));
    tensor.impl()->storage->make_state(site.layer);
    tensor.impl()->storage->write(0, here.bytes(), [&](void* values) {
      if (is_shared)
        detail::draw_initial_share(initializer, state.seed, full, spec, *state.world, values);
      else
        detail::draw_initial_values(initializer, state.seed, full, spec, values);
    });
    if (is_shared) {
      auto shares = std::make_unique<detail::SharedParameter>(*state.world, full, spec, tensor,
                                                              state.whole_now);
      tensor = detail::make_concrete(
          spec, detail::make_ref<detail::Storage>(*state.device, std::move(shares)));
      tensor.impl()->storage->make_state(site.layer);
    }
    if (trained) tensor = detail::make_leaf(tensor);
  }
  (trained ? state.parameters : state.states).add({{full, tensor}});
  return tensor;
}

Tensor Parameters::declare(std::string_view name, const Shape& shape,
                           const Initializer& initializer, CallSite site) const {
  return add(name, {state_->dtype, shape}, initializer, true, site);
}

Tensor Parameters::state(std::string_view name, const Shape& shape, const Initializer& initializer,
                         std::optional<DType> dtype, CallSite site) const {
  return add(name, {dtype.value_or(state_->dtype), shape}, initializer, false, site);
}

const std::vector<Parameters::Entry>& Parameters::entries() const {
  return state_->parameters.below(prefix_);
}
const std::vector<Parameters::Entry>& Parameters::states() const {
  return state_->states.below(prefix_);
}
const std::vector<Parameters::Entry>& Parameters::slots() const {
  return state_->slots.below(prefix_);
}

Tensor Parameters::operator[](NameAt at) const {
  const std::string full = prefix_ + std::string(at.name);
  if (const Tensor* tensor = state_->find_value(full)) return *tensor;
  if (const Tensor* tensor = state_->slots.find(full)) return *tensor;
  detail::refuse("parameters",
                 "there is no " + in_double_quotes(full) + "; " +
                     (prefix_.empty() ? "" : "below " + in_double_quotes(prefix_) + " ") +
                     state_->names_below(prefix_, at.name),
                 at.site);
}

bool Parameters::contains(std::string_view name) const {
  const std::string full = prefix_ + std::string(name);
  return state_->find_value(full) || state_->slots.find(full);
}

bool Parameters::is_symbolic() const noexcept { return static_cast<bool>(state_->graph); }
DType Parameters::dtype() const noexcept { return state_->dtype; }

const std::optional<distributed::World>& Parameters::world() const noexcept {
  return state_->world;
}

Device Parameters::device(CallSite site) const {
  const detail::CallSiteScope at(site);
  if (!state_->device)
    detail::refuse("parameters", "a graph's parameters are on no device before a Session runs it");
  return *state_->device;
}

std::int64_t Parameters::count() const {
  std::int64_t count = 0;
  for (const Entry& entry : entries()) count += entry.tensor.elements();
  return count;
}

// A set may still be empty: what an attempt() has declared goes with it.
void Parameters::zero_grad(CallSite site) const {
  const detail::CallSiteScope at(site);
  if (entries().empty() && prefix_ != state_->root) detail::require_any(*this, "zero_grad");
  for (const Entry& entry : entries()) entry.tensor.zero_grad();
}

void detail::for_each_pair(
    const Parameters& to, const Parameters& from,
    const std::function<void(const Parameters::Entry&, const Tensor&)>& match) {
  const auto other_of = [](const Parameters::Entry& entry, const Parameters& of,
                           const Parameters& in) {
    const std::string name = entry.name.substr(of.prefix().size());
    if (!in.contains(name))
      refuse("copy_from", "there is no " + in_double_quotes(in.prefix() + name) + " to go with " +
                              in_double_quotes(entry.name));
    return in[name];
  };
  for (const auto* list : {&to.entries(), &to.states()})
    for (const Parameters::Entry& here : *list) match(here, other_of(here, to, from));
  for (const auto* list : {&from.entries(), &from.states()})
    for (const Parameters::Entry& there : *list) other_of(there, from, to);
}

void Parameters::copy_from(const Parameters& other, CallSite site) const {
  const detail::CallSiteScope at(site);
  detail::require_own(*this, "copy_from");
  detail::require_own(other, "copy_from");
  state_->require_concrete("copy_from");
  other.state_->require_concrete("copy_from");
  if (!(device() == other.device()))
    detail::refuse("copy_from", "the parameters are on " + device().name() + ", the others on " +
                                    other.device().name());
  std::vector<std::pair<Tensor, Tensor>> copies;
  detail::for_each_pair(*this, other, [&](const Entry& here, const Tensor& there) {
    if (!(here.tensor.impl()->spec == there.impl()->spec))
      detail::refuse<ShapeError>(
          "copy_from", in_double_quotes(here.name) + " is " + here.tensor.impl()->spec.to_string() +
                           " here, but " + there.impl()->spec.to_string() + " in the others");
    const Communicator* const world = detail::shared_by(here.tensor);
    if (world && world == detail::shared_by(there))
      copies.emplace_back(detail::stored(here.tensor), detail::stored(there));
    else
      copies.emplace_back(here.tensor.detach(), there.detach());
  });
  detail::LaunchRow row;  // all or none
  for (const auto& [here, there] : copies) assign(here, there);
  row.flush();
}

detail::Declaring::Declaring(const Parameters& parameters, CallSite site) noexcept
    : at_(site),
      parameters_(parameters),
      parameters_before_(parameters.state_->parameters.all().size()),
      states_before_(parameters.state_->states.all().size()) {}

detail::Declaring::~Declaring() {
  Parameters::State& state = *parameters_.state_;
  if (std::uncaught_exceptions() > exceptions_) state.shrink(parameters_before_, states_before_);
}

}  // namespace ebb
