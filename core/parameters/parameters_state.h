// What the handles of one set of parameters share; for the files that implement Parameters.
#pragma once
#include <unordered_set>

#include "ebb/core/parameters/parameters.h"

namespace ebb {

namespace detail {
// Slots have a '/' in their name, parameters and states have none.
inline bool is_slot(std::string_view name) noexcept {
  return name.find('/') != std::string_view::npos;
}
// What a slot counts as, which its name tells, so that a loaded one counts alike.
inline memory::Category slot_category(std::string_view name) noexcept {
  return name.ends_with(".accumulated") || name.ends_with("/samples")
             ? memory::Category::gradient
             : memory::Category::optimizer_state;
}
inline std::string in_double_quotes(std::string_view name) { return '"' + std::string(name) + '"'; }
}  // namespace detail

struct Parameters::State {
  std::optional<Device> device;  // or
  detail::Ref<Recorder> graph;
  Seed seed;
  DType dtype = DType::f32;
  std::string root;              // the prefix of the whole set
  bool has_substitutes = false;  // made by with(): the parameters are the caller's tensors
  detail::NamedTensors parameters;
  detail::NamedTensors states;
  detail::NamedTensors slots;
  std::unordered_set<std::string> frozen;  // full names
  // Where a slot of that name (what follows the '/') beside the i-th parameter is in `slots`, or
  // kNone: optimizers find thousands of slots in each step without making their names.
  detail::ByName<std::vector<std::size_t>> slots_beside;

  // Takes back what was declared after the first so many; a graph's declarations stay.
  void shrink(std::size_t parameter_count, std::size_t state_count) noexcept;
  void require_concrete(const char* what) const;
  void require_values(const char* what) const;  // concrete, and not simulated
  // A parameter or state of that full name, or null.
  const Tensor* find_value(std::string_view name) const noexcept;
  // What there is below a prefix, for a message about what there is not; the nearest first.
  std::string names_below(std::string_view prefix, std::string_view wanted);
};

}  // namespace ebb
