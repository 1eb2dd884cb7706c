#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ebb/core/recorder.h"
#include "ebb/core/tensor.h"
#include "ebb/core/variable.h"

namespace ebb {

// A slot to be found or made: state an optimizer keeps, starting at zero. Its name has a '/', which
// no parameter's has: "hidden.weight/adam.first_moment" stands beside that parameter, "adam/step"
// by itself.
struct SlotRequest {
  std::string name;
  Spec spec;
  memory::Category category = memory::Category::optimizer_state;
};

// The named parameters of a model and the slots that optimizers keep with them. A handle: copies
// and scopes share one set. Eager parameters are tensors on a device, leaves that gradients
// accumulate in; those of a graph are declarations, of which each session has values of its own.
// Used by one thread at a time.
class Parameters {
 public:
  struct Entry {
    std::string name;  // full name, scopes joined by '.'
    Tensor tensor;
  };

  explicit Parameters(const Device& device, Seed seed = {}, DType dtype = DType::f32);
  // Of a graph, which converts to its recorder.
  explicit Parameters(detail::Ref<Recorder> graph, Seed seed = {}, DType dtype = DType::f32);

  // The same set; names declared through it begin with "name.".
  Parameters scope(std::string_view name) const;

  // A new parameter of the set's dtype. Throws Error for a name used twice, an empty name or one
  // with '/' in it (which names slots), OutOfMemory.
  Tensor declare(std::string_view name, const Shape& shape, const Initializer& initializer,
                 EBB_CALL_SITE) const;

  // All parameters, in the order of declaration (whatever the scope of this handle).
  const std::vector<Entry>& entries() const noexcept;
  // All slots, in the order they were made.
  const std::vector<Entry>& slots() const noexcept;
  // A parameter or slot by full name. Throws Error naming what there is.
  Tensor operator[](std::string_view name) const;
  bool contains(std::string_view name) const noexcept;
  bool is_symbolic() const noexcept;
  DType dtype() const noexcept;
  // Throws Error for a graph's parameters.
  Device device() const;
  // The number of scalar parameters, slots not counted.
  std::int64_t count() const noexcept;

  // The slots of these names, made (zero) where they do not exist yet. All or nothing: if memory
  // runs out, none has been made. Throws Error if one exists with another shape or dtype, or for a
  // name without '/'.
  Tensors find_or_make_slots(std::span<const SlotRequest> requests, CallSite site) const;
  // Takes back the slots made after the first `count` of slots(): what a step that failed half-way
  // leaves nothing with. Nothing to do for a graph, whose declarations stay.
  void drop_slots_after(std::size_t count) const noexcept;

  // Frees the accumulated gradients. Nothing to do for a graph.
  void zero_grad() const;

  // Values, slots and the thread's random state, as a safetensors file, written under a temporary
  // name and renamed when complete. Eager only (a graph's values belong to a session). Throws
  // FileError.
  void save(const std::string& file) const;
  // Reads what save, or a session's, wrote: every parameter's values, in place. Slots become those
  // of the file: made as needed, zero where it has none. The file's parameters of other names, and
  // their slots, are left alone. Throws FileError naming the first parameter that is missing or has
  // another shape or dtype, OutOfMemory; then nothing has changed.
  void load(const std::string& file) const;

 private:
  struct State;
  Parameters(std::shared_ptr<State> state, std::string prefix);
  std::shared_ptr<State> state_;
  std::string prefix_;
};

}  // namespace ebb
