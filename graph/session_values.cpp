// Variables of a session: initial values, assignment, checkpoints.
#include <numeric>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/files/safetensors.h"
#include "ebb/core/parameters/checkpoint.h"
#include "ebb/graph/session_impl.h"

namespace ebb {

Session::Impl::OpenVariables::OpenVariables(Impl& session)
    : session_(session.shared_from_this()),
      lock_(session),
      reading_(session.graph.state()),
      variables_(session.variables) {
  session.require_open();
  provide();
}

Session::Impl::OpenVariables::~OpenVariables() {
  if (std::uncaught_exceptions() <= exceptions_) return;
  for (auto added = added_.rbegin(); added != added_.rend(); ++added) variables_.release(*added);
}

void Session::Impl::OpenVariables::provide(std::span<const std::uint32_t> indices) {
  added_.emplace_back();
  added_.back() = variables_.allocate(indices);
}

std::size_t Session::Impl::variable_index(const Tensor& variable, const char* what) const {
  if (!graph.state().owns(variable) || variable.impl()->node->op != &variable_op)
    detail::refuse(what, "takes a variable of this session's graph, not " + variable.to_string());
  return static_cast<std::size_t>(
      variable.impl()->node->attributes.get<VariableAttributes>().index);
}

std::vector<std::size_t> Session::Impl::variable_indices(EntryLists lists, const char* what) const {
  std::vector<std::size_t> indices;
  for (const auto* list : lists)
    for (const Parameters::Entry& entry : *list)
      indices.push_back(variable_index(entry.tensor, what));
  return indices;
}

void Session::initialize(const Parameters& parameters, CallSite site) {
  const detail::CallSiteScope scope(site);
  const std::shared_ptr<Impl> impl = impl_.shared();
  const Impl::OpenVariables open(*impl);
  detail::require_any(parameters, "initialize");
  for (const std::size_t index : impl->variable_indices(
           {&parameters.entries(), &parameters.states(), &parameters.slots()}, "initialize"))
    if (impl->variables.has_memory(index)) impl->variables.draw_initial(index);
}

void Session::initialize(CallSite site) {
  const detail::CallSiteScope scope(site);
  const std::shared_ptr<Impl> impl = impl_.shared();
  const Impl::OpenVariables open(*impl);
  for (std::size_t i = 0; i < impl->variables.size(); ++i)
    if (impl->variables.has_memory(i)) impl->variables.draw_initial(i);
}

Tensor Session::value(const Tensor& variable, CallSite site) {
  const detail::CallSiteScope scope(site);
  const std::shared_ptr<Impl> impl = impl_.shared();
  Impl::OpenVariables open(*impl);
  const std::size_t index = impl->variable_index(variable, "value");
  open.provide(index);
  const VariableDeclaration& declaration = impl->variables.declaration(index);
  if (!impl->variables.is_initialized(index))
    detail::refuse("value", "variable '" + declaration.name + "' has no value");
  impl->variables.require_whole(index);
  Tensor copy = detail::allocate(declaration.spec, impl->device, memory::Category::temporary,
                                 detail::tag("session value", site));
  copy.impl()->storage->use_on(impl->stream.get());
  impl->device.runtime().copy(impl->stream.get(), detail::data(copy), impl->variables.data(index),
                              copy.bytes());
  return copy;
}

void Session::assign(const Tensor& variable, const Tensor& given, CallSite site) {
  const detail::CallSiteScope scope(site);
  const Tensor value = given;  // a watch call may drop the caller's handle
  const std::shared_ptr<Impl> impl = impl_.shared();
  Impl::OpenVariables open(*impl);
  const std::size_t index = impl->variable_index(variable, "assign");
  const VariableDeclaration& declaration = impl->variables.declaration(index);
  if (!value.defined() || !value.impl()->storage || !(value.impl()->spec == declaration.spec))
    detail::refuse<ShapeError>("assign", "variable '" + declaration.name + "' is " +
                                             declaration.spec.to_string() +
                                             " and cannot be set to " + value.to_string());
  if (value.device().is_simulated() && !impl->device.is_simulated())
    detail::refuse<SimulatedRead>("assign", "variable '" + declaration.name +
                                                "' cannot be set to " + value.to_string() +
                                                ", which has no values: the device is simulated");
  open.provide(index);
  detail::require_whole(*value.impl()->storage, "assign", site);
  impl->variables.write(index, value);
}

void Session::Impl::save(const std::string& file, const std::vector<std::size_t>& indices,
                         detail::RandomState random, const Resumable* loader) {
  if (device.is_simulated())
    detail::refuse<SimulatedRead>("save",
                                  "the session's device is simulated: there are no values to save");
  std::vector<safetensors::View> views;
  std::vector<HostView> values;
  for (const std::size_t index : indices) {
    const VariableDeclaration& declaration = variables.declaration(index);
    // A slot never needed is zero, which is also what reading a file without it gives.
    if (!variables.has_memory(index)) continue;
    if (!variables.is_initialized(index))
      detail::refuse("save", "variable '" + declaration.name + "' has no value");
    variables.require_whole(index);
    values.push_back(variables.view(index));
    views.push_back({declaration.name, declaration.spec, values.back().data()});
  }
  detail::write_checkpoint(file, views, random, loader);
}

void Session::Impl::restore(OpenVariables& open, const std::string& file,
                            const std::vector<std::size_t>& indices, detail::RandomState random,
                            Resumable* loader) {
  const safetensors::File checkpoint = detail::open_checkpoint(file);
  Resumable::Position position;
  if (loader) position = detail::loader_position(checkpoint, file, *loader);
  std::size_t total = 0;
  for (const std::size_t index : indices) {
    const VariableDeclaration& declaration = variables.declaration(index);
    const safetensors::File::Entry* entry = checkpoint.find(declaration.name);
    if (!entry && declaration.category == memory::Category::parameter)
      detail::refuse<FileError>("restore", file + " has no parameter '" + declaration.name + "'; " +
                                               detail::names_in(checkpoint, declaration.name));
    if (entry && !(entry->spec == declaration.spec))
      detail::refuse<FileError>("restore", "'" + declaration.name + "' is " +
                                               declaration.spec.to_string() + " in the graph and " +
                                               entry->spec.to_string() + " in " + file);
    total += declaration.spec.bytes();
  }
  std::vector<std::uint32_t> needed;
  for (const std::size_t index : indices)
    if (checkpoint.find(variables.declaration(index).name))
      needed.push_back(static_cast<std::uint32_t>(index));
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
      const std::string& name = variables.declaration(index).name;
      if (checkpoint.find(name)) checkpoint.read(name, at);
    });
  for_each([&](std::size_t index, const std::byte* at) {
    if (checkpoint.find(variables.declaration(index).name))
      variables.write(index, at);
    else if (variables.has_memory(index))
      variables.zero(index);
  });
  if (random == detail::RandomState::saved) detail::restore_generator(checkpoint);
  if (loader) loader->resume(position);
}

void Session::Impl::save_all(const std::string& file, const Resumable* loader) {
  OpenVariables open(*this);
  variables.by_name(variables.all, "save");
  if (const std::int64_t random = graph.state().random_state(); random >= 0)
    open.provide(static_cast<std::size_t>(random));
  std::vector<std::size_t> all(variables.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  save(file, all, detail::RandomState::saved, loader);
}

void Session::Impl::restore_all(const std::string& file, Resumable* loader) {
  OpenVariables open(*this);
  variables.by_name(variables.all, "restore");
  std::vector<std::size_t> all(variables.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  restore(open, file, all, detail::RandomState::saved, loader);
}

void Session::save(const std::string& file, CallSite site) {
  const detail::CallSiteScope scope(site);
  impl_.shared()->save_all(file, nullptr);
}

void Session::save(const std::string& file, const Resumable& loader, CallSite site) {
  const detail::CallSiteScope scope(site);
  impl_->save_all(file, &loader);
}

void Session::save(const std::string& file, const Parameters& parameters, CallSite site) {
  const detail::CallSiteScope scope(site);
  const std::shared_ptr<Impl> impl = impl_.shared();
  const Impl::OpenVariables open(*impl);
  detail::require_any(parameters, "save");
  impl->save(file,
             impl->variable_indices(
                 {&parameters.entries(), &parameters.states(), &parameters.slots()}, "save"),
             detail::RandomState::left_out);
}

void Session::restore(const std::string& file, CallSite site) {
  const detail::CallSiteScope scope(site);
  impl_->restore_all(file, nullptr);
}

void Session::restore(const std::string& file, Resumable& loader, CallSite site) {
  const detail::CallSiteScope scope(site);
  impl_->restore_all(file, &loader);
}

void Session::restore(const std::string& file, const Parameters& parameters,
                      const RestoreOptions& options, CallSite site) {
  const detail::CallSiteScope scope(site);
  const std::shared_ptr<Impl> impl = impl_.shared();
  Impl::OpenVariables open(*impl);
  detail::require_any(parameters, "restore");
  static const std::vector<Parameters::Entry> kNone;
  impl->restore(open, file,
                impl->variable_indices({&parameters.entries(), &parameters.states(),
                                        options.slots ? &parameters.slots() : &kNone},
                                       "restore"),
                detail::RandomState::left_out);
}

}  // namespace ebb
