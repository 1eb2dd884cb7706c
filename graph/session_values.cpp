// Variables of a session: initial values, assignment, checkpoints.
#include <cstring>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/files/safetensors.h"
#include "ebb/core/parameters/checkpoint.h"
#include "ebb/core/parameters/shared_parameter.h"
#include "ebb/core/random/random.h"
#include "ebb/graph/session_impl.h"

namespace ebb {

Session::Impl::OpenVariables::OpenVariables(const Pointer& session, CallSite site)
    : scope_(site),
      session_(session.shared()),
      lock_(*session_),
      reading_(session_->graph.state()) {
  session_->require_open();
  provide();
}

Session::Impl::OpenVariables::~OpenVariables() {
  if (std::uncaught_exceptions() <= exceptions_) return;
  for (auto added = added_.rbegin(); added != added_.rend(); ++added)
    session_->variables.release(*added);
}

void Session::Impl::OpenVariables::provide(std::span<const std::uint32_t> indices) {
  detail::SessionVariables& variables = session_->variables;
  if (session_->budget && !variables.slots_on_host() &&
      variables.reserved_bytes_with(indices) > *session_->budget &&
      session_->device.runtime().profile().link_bytes_per_us > 0)
    session_->keep_slots_on_host();
  added_.emplace_back();
  added_.back() = variables.allocate(indices);
}

std::size_t Session::Impl::variable_index(const Tensor& tensor, const char* what) const {
  const Tensor variable = graph.state().owns(tensor) ? detail::stored(tensor) : tensor;
  if (!graph.state().owns(variable) || variable.impl()->node->op != &variable_op)
    detail::refuse(what, "takes a variable of this session's graph, not " + variable.to_string());
  return static_cast<std::size_t>(
      variable.impl()->node->attributes.get<VariableAttributes>().index);
}

Session::Impl::Indices Session::Impl::variable_indices(const Parameters& parameters,
                                                       const char* what, bool slots) const {
  detail::require_any(parameters, what);
  std::vector<const std::vector<Parameters::Entry>*> lists = {&parameters.entries(),
                                                              &parameters.states()};
  if (slots) lists.push_back(&parameters.slots());
  Indices indices;
  for (const auto* list : lists)
    for (const Parameters::Entry& entry : *list)
      indices.push_back(static_cast<std::uint32_t>(variable_index(entry.tensor, what)));
  return indices;
}

void Session::Impl::draw_initial(const Indices& indices) {
  for (const std::size_t index : indices)
    if (variables.has_memory(index)) variables.draw_initial(index);
}

void Session::initialize(const Parameters& parameters, CallSite site) {
  const Impl::OpenVariables open(impl_, site);
  open->draw_initial(open->variable_indices(parameters, "initialize"));
}

void Session::initialize(CallSite site) {
  const Impl::OpenVariables open(impl_, site);
  open->draw_initial(open->variables.indices());
}

Tensor Session::value(const Tensor& variable, CallSite site) {
  Impl::OpenVariables open(impl_, site);
  const std::size_t index = open->variable_index(variable, "value");
  open.provide(index);
  open->variables.require_value(index, "value");
  Tensor copy = detail::allocate(open->variables.declaration(index).spec, open->device,
                                 memory::Category::temporary, detail::tag("session value", site));
  copy.impl()->storage->use_on(open->stream.get());
  open->device.runtime().copy(open->stream.get(), detail::data(copy), open->variables.data(index),
                              copy.bytes());
  return copy;
}

void Session::assign(const Tensor& variable, const Tensor& given, CallSite site) {
  const Tensor value = given;  // a watch call may drop the caller's handle
  Impl::OpenVariables open(impl_, site);
  const std::size_t index = open->variable_index(variable, "assign");
  const VariableDeclaration& declaration = open->variables.declaration(index);
  if (!value.defined() || !value.impl()->storage || !(value.impl()->spec == declaration.spec))
    detail::refuse<ShapeError>("assign", "variable '" + declaration.name + "' is " +
                                             declaration.spec.to_string() +
                                             " and cannot be set to " + value.to_string());
  if (value.device().is_simulated() && !open->device.is_simulated())
    detail::refuse<SimulatedRead>("assign", "variable '" + declaration.name +
                                                "' cannot be set to " + value.to_string() +
                                                ", which has no values: the device is simulated");
  open.provide(index);
  detail::require_whole(*value.impl()->storage, "assign", site);
  open->variables.write(index, value);
}

void Session::Impl::save(OpenVariables& open, const std::string& file, const Parameters* parameters,
                         const Resumable* loader) {
  if (!parameters) variables.by_name(variables.all, "save");
  const Indices indices = parameters ? variable_indices(*parameters, "save") : variables.indices();
  if (device.is_simulated() && !device.runtime().simulation())
    detail::refuse<SimulatedRead>("save",
                                  "the session's device is simulated: there are no values to save");
  if (const std::int64_t random = graph.state().random_state(); !parameters && random >= 0)
    open.provide(static_cast<std::size_t>(random));
  std::vector<detail::SavedValue> saved;
  std::optional<distributed::World> world;
  std::vector<HostView> values;
  for (const std::size_t index : indices) {
    const VariableDeclaration& declaration = variables.declaration(index);
    // A slot never needed is zero, which is also what reading a file without it gives.
    if (!variables.has_memory(index)) continue;
    variables.require_value(index, "save");
    values.push_back(variables.view(index));
    saved.push_back(
        {{declaration.name, declaration.spec, values.back().data()}, declaration.whole});
    if (!declaration.world) continue;
    if (world && !(world == declaration.world))
      detail::refuse("save", "sets of Parameters over two worlds are saved one at a time");
    world = declaration.world;
  }
  detail::write_checkpoint(file, saved, device,
                           parameters ? detail::RandomState::left_out : detail::RandomState::saved,
                           loader, world);
}

void Session::Impl::restore(OpenVariables& open, const std::string& file,
                            const Parameters* parameters, bool slots, Resumable* loader) {
  if (!parameters) variables.by_name(variables.all, "restore");
  const Indices indices =
      parameters ? variable_indices(*parameters, "restore", slots) : variables.indices();
  const safetensors::File checkpoint = detail::open_checkpoint(file, device);
  Resumable::Position position;
  if (loader) position = detail::loader_position(checkpoint, file, *loader);
  std::size_t total = 0;
  Indices needed;
  for (const std::uint32_t index : indices) {
    const VariableDeclaration& declaration = variables.declaration(index);
    const safetensors::File::Entry* entry = checkpoint.find(declaration.name);
    if (!entry && declaration.category == memory::Category::parameter)
      detail::refuse<FileError>("restore", file + " has no parameter '" + declaration.name + "'; " +
                                               detail::names_in(checkpoint, declaration.name));
    Spec spec = declaration.spec;
    if (declaration.whole) spec.shape = *declaration.whole;
    if (entry && !(entry->spec == spec))
      detail::refuse<FileError>("restore", "'" + declaration.name + "' is " + spec.to_string() +
                                               " in the graph and " + entry->spec.to_string() +
                                               " in " + file);
    total += declaration.spec.bytes();
    if (entry) needed.push_back(index);
  }
  open.provide(needed);
  // Everything is read before anything is written, so that a file that fails half-way changes
  // nothing. Slots that the file lacks are zero here.
  HostBytes values(device.is_simulated() ? 0 : total, "restore",
                   "a copy of a checkpoint's values, before any is written");
  const auto for_each = [&](const auto& what) {
    std::byte* at = values.data();
    for (const std::size_t index : indices) {
      what(index, at);
      if (at) at += variables.declaration(index).spec.bytes();
    }
  };
  if (!device.is_simulated())
    for_each([&](std::size_t index, std::byte* at) {
      const VariableDeclaration& declaration = variables.declaration(index);
      if (checkpoint.find(declaration.name))
        detail::read_checkpoint(checkpoint, declaration.name, at,
                                declaration.whole ? &*declaration.world : nullptr);
      if (static_cast<std::int64_t>(index) != graph.state().random_state()) return;
      std::uint64_t key;  // rank 0 has written the file, and no other rank draws its numbers
      std::memcpy(&key, at, sizeof key);
      key = detail::by_rank(key);
      std::memcpy(at, &key, sizeof key);
    });
  for_each([&](std::size_t index, const std::byte* at) {
    if (checkpoint.find(variables.declaration(index).name))
      variables.write(index, at);
    else if (variables.has_memory(index))
      variables.zero(index);
  });
  if (!parameters) detail::restore_generator(checkpoint);
  if (loader) loader->resume(position);
}

void Session::save(const std::string& file, CallSite site) {
  Impl::OpenVariables open(impl_, site);
  open->save(open, file, nullptr, nullptr);
}

void Session::save(const std::string& file, const Resumable& loader, CallSite site) {
  Impl::OpenVariables open(impl_, site);
  open->save(open, file, nullptr, &loader);
}

void Session::save(const std::string& file, const Parameters& parameters, CallSite site) {
  Impl::OpenVariables open(impl_, site);
  open->save(open, file, &parameters, nullptr);
}

void Session::restore(const std::string& file, CallSite site) {
  Impl::OpenVariables open(impl_, site);
  open->restore(open, file, nullptr, true, nullptr);
}

void Session::restore(const std::string& file, Resumable& loader, CallSite site) {
  Impl::OpenVariables open(impl_, site);
  open->restore(open, file, nullptr, true, &loader);
}

void Session::restore(const std::string& file, const Parameters& parameters,
                      const RestoreOptions& options, CallSite site) {
  Impl::OpenVariables open(impl_, site);
  open->restore(open, file, &parameters, options.slots, nullptr);
}

void Session::load_torch(const Parameters& parameters, const std::string& file,
                         const std::vector<TorchRule>& rules, CallSite site) {
  const Impl::OpenVariables open(impl_, site);
  detail::read_torch(parameters, file, rules, open->device.is_simulated(),
                     [&](const Tensor& parameter, const std::byte* values) {
                       open->variables.write(open->variable_index(parameter, "load_torch"),
                                             detail::own_values(parameter, values));
                     });
}

}  // namespace ebb
