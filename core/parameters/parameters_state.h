// State shared by the handles of one set of parameters; only for the files that implement
// Parameters.
#pragma once
#include <unordered_set>

#include "ebb/core/parameters/parameters.h"
#include "ebb/core/parameters/shared_parameter.h"

namespace ebb {

namespace detail {
// Slots have a '/' in their name, parameters and states have none.
inline bool is_slot(std::string_view name) noexcept {
  return name.find('/') != std::string_view::npos;
}
// Category of a slot. It depends on the name alone, so that a loaded slot counts alike.
inline memory::Category slot_category(std::string_view name) noexcept {
  return name.ends_with(".accumulated") || name.ends_with("/samples")
             ? memory::Category::gradient
             : memory::Category::optimizer_state;
}
// Writes a parameter, state or slot from memory of the host; null: its values are not known, as on
// a simulated device. It keeps them when an attempt() around the call fails.
void write_state(const TensorImpl& impl, const std::byte* from);
inline std::string in_double_quotes(std::string_view name) { return '"' + std::string(name) + '"'; }
}  // namespace detail

struct Parameters::State {
  std::optional<Device> device;  // or graph
  detail::Ref<Recorder> graph;
  Seed seed;
  DType dtype = DType::f32;
  std::string root;  // the prefix of the whole set
  std::optional<distributed::World> world;
  std::shared_ptr<detail::WholeNow> whole_now = std::make_shared<detail::WholeNow>();
  bool has_substitutes = false;  // made by with(): the parameters are the caller's tensors
  detail::NamedTensors parameters;
  detail::NamedTensors states;
  detail::NamedTensors slots;
  std::unordered_set<std::string> frozen;  // full names
  // Position in `slots` of the slot with this name (after the '/') beside the i-th parameter, or
  // kNone. Optimizers find thousands of slots in each step without composing their names.
  detail::ByName<std::vector<std::size_t>> slots_beside;

  // Takes back all but the first parameters and states; a graph's declarations stay.
  void shrink(std::size_t parameter_count, std::size_t state_count) noexcept;
  void drop_slots_after(std::size_t count) noexcept;
  Tensor make_slot(const SlotRequest& request, CallSite site) const;
  // The parameter that a slot is beside, "weight/adam.first_moment"; null for a count, "adam/step".
  const Tensor* owner_of(std::string_view slot) const noexcept;
  // The parameter of what ranks have shares of.
  const Tensor& whole_of(std::string_view name) const noexcept {
    const Tensor* const owner = owner_of(name);
    return owner ? *owner : *parameters.find(name);
  }
  // Whether ranks have shares of this slot, or of this parameter.
  bool is_shared(std::string_view name) const noexcept;
  // The shape here of what has this shape in one process.
  Shape shape_here(std::string_view name, const Shape& whole) const noexcept;
  Shape share_shape(const Shape& whole) const noexcept;
  bool shares_parameters() const noexcept {
    return world && world->sharding() == distributed::Sharding::parameters;
  }
  // While compile() traces: what the function does depends on this set's slots, and on which of its
  // parameters are frozen.
  static void note_use(const std::shared_ptr<State>& state);
  void require_concrete(const char* what) const;
  void require_values(const char* what) const;  // concrete, and on a real device or in a prediction
  // A parameter or state by full name, or null.
  const Tensor* find_value(std::string_view name) const noexcept;
  // Lists the names below a prefix, nearest first, for a message about an unknown name.
  std::string names_below(std::string_view prefix, std::string_view wanted);
};

}  // namespace ebb
