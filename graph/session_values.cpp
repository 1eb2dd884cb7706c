// Variables of a session: initial values, assignment, checkpoints.
#include <cstring>
#include <vector>

#include "ebb/core/checkpoint.h"
#include "ebb/core/error.h"
#include "ebb/core/safetensors.h"
#include "ebb/graph/session_impl.h"

namespace ebb {

std::unique_lock<std::mutex> Session::Impl::open_variables() {
  std::unique_lock lock(mutex);
  require_open();
  variables.allocate();
  return lock;
}

std::size_t Session::Impl::variable_index(const Tensor& variable, const char* what) const {
  if (!graph.state().owns(variable) || variable.impl()->node->op != &variable_op)
    throw Error(std::string("[") + what + "] takes a variable of this session's graph, not " +
                variable.to_string());
  return static_cast<std::size_t>(
      variable.impl()->node->attributes.get<VariableAttributes>().index);
}

void Session::initialize(const Parameters& parameters) {
  const auto lock = impl_->open_variables();
  std::vector<std::size_t> indices;
  for (const auto* list : {&parameters.entries(), &parameters.slots()})
    for (const Parameters::Entry& entry : *list)
      indices.push_back(impl_->variable_index(entry.tensor, "initialize"));
  for (const std::size_t index : indices) impl_->variables.draw_initial(index);
}

void Session::initialize() {
  const auto lock = impl_->open_variables();
  for (std::size_t i = 0; i < impl_->variables.size(); ++i) impl_->variables.draw_initial(i);
}

Tensor Session::value(const Tensor& variable) {
  const auto lock = impl_->open_variables();
  const std::size_t index = impl_->variable_index(variable, "value");
  const VariableDeclaration& declaration = impl_->variables.declaration(index);
  if (!impl_->variables.is_initialized(index))
    throw Error("[value] variable '" + declaration.name + "' has no value");
  Tensor copy = detail::allocate(declaration.spec, impl_->device, memory::Category::temporary,
                                 {"session value"});
  if (!impl_->device.is_simulated() && copy.bytes())
    std::memcpy(detail::data(copy), impl_->variables.data(index), copy.bytes());
  return copy;
}

void Session::assign(const Tensor& variable, const Tensor& value) {
  const auto lock = impl_->open_variables();
  const std::size_t index = impl_->variable_index(variable, "assign");
  const VariableDeclaration& declaration = impl_->variables.declaration(index);
  if (!value.defined() || !value.impl()->storage || !(value.impl()->spec == declaration.spec))
    throw ShapeError("[assign] variable '" + declaration.name + "' is " +
                     declaration.spec.to_string() + " and cannot be set to " + value.to_string());
  if (value.device().is_simulated() && !impl_->device.is_simulated())
    throw SimulatedRead("[assign] variable '" + declaration.name + "' cannot be set to " +
                        value.to_string() + ", which has no values: the device is simulated");
  impl_->variables.write(index, detail::data(value));
}

void Session::save(const std::string& file) {
  const auto lock = impl_->open_variables();
  if (impl_->device.is_simulated())
    throw SimulatedRead("[save] the session's device is simulated: there are no values to save");
  std::vector<safetensors::View> views;
  for (std::size_t i = 0; i < impl_->variables.size(); ++i) {
    const VariableDeclaration& declaration = impl_->variables.declaration(i);
    if (!impl_->variables.is_initialized(i))
      throw Error("[save] variable '" + declaration.name + "' has no value");
    views.push_back({declaration.name, declaration.spec, impl_->variables.data(i)});
  }
  detail::write_checkpoint(file, views);
}

void Session::restore(const std::string& file) {
  const auto lock = impl_->open_variables();
  const safetensors::File checkpoint = detail::open_checkpoint(file);
  detail::SessionVariables& variables = impl_->variables;
  std::size_t largest = 0;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const VariableDeclaration& declaration = variables.declaration(i);
    const safetensors::File::Entry* entry = checkpoint.find(declaration.name);
    if (!entry && declaration.category == memory::Category::parameter)
      throw FileError("[restore] " + file + " has no parameter '" + declaration.name + "'");
    if (entry && !(entry->spec == declaration.spec))
      throw FileError("[restore] '" + declaration.name + "' is " + declaration.spec.to_string() +
                      " in the graph and " + entry->spec.to_string() + " in " + file);
    largest = std::max(largest, declaration.spec.bytes());
  }
  // Read twice, so that a file that fails half-way changes nothing.
  std::vector<std::byte> values(largest);
  for (const bool write : {false, true})
    for (std::size_t i = 0; i < variables.size(); ++i) {
      const VariableDeclaration& declaration = variables.declaration(i);
      if (!checkpoint.find(declaration.name)) {
        if (write) variables.zero(i);
        continue;
      }
      checkpoint.read(declaration.name, values.data());
      if (write) variables.write(i, values.data());
    }
}

}  // namespace ebb
