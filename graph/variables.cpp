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
    if (is_random_state(i)) begin_random_state(i);
  }
  const std::size_t parameters = split[static_cast<std::size_t>(Category::parameter)];
  parameter_bytes_ += parameters;
  slot_bytes_ += bytes - parameters;
}

std::size_t SessionVariables::rounded_bytes(const VariableDeclaration& variable) const noexcept {
  return runtime_.profile().rounded(variable.spec.bytes());
}

void SessionVariables::draw_initial(std::size_t index) {
  if (is_random_state(index)) return;
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
  if (is_random_state(index)) return;
  if (!runtime_.is_simulated())
    std::memset(values_[index].data, 0, declaration(index).spec.bytes());
  values_[index].initialized = true;
}

void SessionVariables::begin_random_state(std::size_t index) noexcept {
  const std::int64_t state[] = {static_cast<std::int64_t>(random_key_), 0};
  write(index, state);
}

void SessionVariables::count_run() noexcept {
  if (graph_.random_state() < 0 || runtime_.is_simulated()) return;
  const auto index = static_cast<std::size_t>(graph_.random_state());
  if (index < values_.size()) ++reinterpret_cast<std::int64_t*>(values_[index].data)[1];
}

}  // namespace ebb::detail
