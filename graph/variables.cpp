#include "ebb/graph/variables.h"

#include <cstring>

namespace ebb::detail {

using memory::Category;

void SessionVariables::allocate() {
  const auto& declared = graph_.variables();
  if (values_.size() == declared.size()) return;
  const memory::Profile& profile = runtime_.profile();
  // One segment a category; the second allocation may fail after the first.
  std::vector<Value> added(declared.size() - values_.size());
  memory::Block* blocks[2] = {};
  try {
    for (int pass = 0; pass < 2; ++pass) {
      const auto is_mine = [&](std::size_t i) {
        return (declared[i].category == Category::parameter) == (pass == 0);
      };
      std::size_t bytes = 0;
      memory::ByCategory split{};  // accumulated gradients are slots too
      for (std::size_t i = values_.size(); i < declared.size(); ++i) {
        if (!is_mine(i)) continue;
        const std::size_t each = profile.rounded(declared[i].spec.bytes());
        bytes += each;
        split[static_cast<std::size_t>(declared[i].category)] += each;
      }
      if (bytes == 0) continue;
      const bool parameters = pass == 0;
      blocks[pass] = pool_.allocate({bytes,
                                     parameters ? Category::parameter : Category::optimizer_state,
                                     {parameters ? "session variables" : "session slots"}},
                                    split);
      std::size_t offset = 0;
      for (std::size_t i = values_.size(); i < declared.size(); ++i) {
        if (!is_mine(i)) continue;
        added[i - values_.size()].data = static_cast<std::byte*>(blocks[pass]->data()) + offset;
        offset += profile.rounded(declared[i].spec.bytes());
      }
    }
    values_.reserve(declared.size());
  } catch (...) {
    for (memory::Block* block : blocks) pool_.free(block);
    throw;
  }
  for (int pass = 0; pass < 2; ++pass)
    if (blocks[pass]) bytes_[pass] += blocks[pass]->allocated_bytes();
  const std::size_t first = values_.size();
  values_.insert(values_.end(), added.begin(), added.end());
  for (std::size_t i = first; i < values_.size(); ++i)
    if (static_cast<std::int64_t>(i) == graph_.run_count()) zero(i);
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
