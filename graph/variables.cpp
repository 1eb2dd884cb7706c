#include "ebb/graph/variables.h"

#include <cstring>

namespace ebb::detail {

using memory::Category;

void SessionVariables::allocate() {
  const auto& declared = graph_.variables();
  const std::size_t first = values_.size();
  if (first == declared.size()) return;
  values_.reserve(declared.size());
  std::size_t bytes = 0;
  memory::ByCategory split{};
  for (std::size_t i = first; i < declared.size(); ++i) {
    const std::size_t each = rounded_bytes(declared[i]);
    bytes += each;
    split[static_cast<std::size_t>(declared[i].category)] += each;
  }
  const memory::Block* block =
      pool_.allocate({bytes, Category::parameter, {"session variables"}}, split);
  auto* data = static_cast<std::byte*>(block->data());
  for (std::size_t i = first; i < declared.size(); ++i) {
    values_.push_back({data, false});
    if (data) data += rounded_bytes(declared[i]);
    // Slots and the count of runs start by themselves; parameters wait for their values.
    if (declared[i].category != Category::parameter) zero(i);
  }
  const std::size_t parameters = split[static_cast<std::size_t>(Category::parameter)];
  parameter_bytes_ += parameters;
  slot_bytes_ += bytes - parameters;
}

std::size_t SessionVariables::rounded_bytes(const VariableDeclaration& variable) const noexcept {
  return runtime_.profile().rounded(variable.spec.bytes());
}

void SessionVariables::draw_initial(std::size_t index) {
  const VariableDeclaration& variable = declaration(index);
  if (!runtime_.is_simulated())
    draw_initial_values(variable.initializer, variable.seed, variable.name, variable.spec,
                        values_[index].data);
  values_[index].initialized = true;
}

void SessionVariables::write(std::size_t index, const void* value) noexcept {
  if (!runtime_.is_simulated())
    std::memcpy(values_[index].data, value, declaration(index).spec.bytes());
  values_[index].initialized = true;
}

void SessionVariables::zero(std::size_t index) noexcept {
  if (!runtime_.is_simulated())
    std::memset(values_[index].data, 0, declaration(index).spec.bytes());
  values_[index].initialized = true;
}

void SessionVariables::count_run() noexcept {
  if (graph_.run_count() < 0 || runtime_.is_simulated()) return;
  const auto index = static_cast<std::size_t>(graph_.run_count());
  if (index < values_.size()) ++*reinterpret_cast<std::int64_t*>(values_[index].data);
}

}  // namespace ebb::detail
