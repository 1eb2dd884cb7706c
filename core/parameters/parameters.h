#pragma once
#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ebb/core/files/resumable.h"
#include "ebb/core/parameters/named_tensors.h"
#include "ebb/core/parameters/variable.h"
#include "ebb/core/tensor/recorder.h"
#include "ebb/core/tensor/tensor.h"

namespace ebb {

class Parameters;
namespace detail {
class Declaring;
void require_own(const Parameters& parameters, const char* what);
}  // namespace detail

// A slot to be found or made: state that an optimizer keeps, starting at zero. Its name has a '/',
// which no parameter's has: "hidden.weight/adam.first_moment" stands beside that parameter,
// "adam/step" by itself. Accumulated gradients (names that end in ".accumulated" or "/samples")
// count as gradients, all other slots as optimizer state.
struct SlotRequest {
  std::string name;
  Spec spec;
};

// A slot beside a parameter, of its shape.
struct SlotBeside {
  std::string name;  // what follows the '/': "adam.first_moment"
  DType dtype;
};
// Slots to be found or made beside some parameters.
struct SlotsBeside {
  std::span<const std::size_t> parameters;  // positions in entries()
  std::span<const SlotBeside> slots;        // of each of them
};

struct ParametersOptions {
  DType dtype = DType::f32;
  // Begins every name of the set, as a scope's would. Two sets of a graph may do without; what
  // saves, restores or copies a whole session then has to tell their names apart.
  std::string name = {};
};

struct RestoreOptions {
  bool slots = true;  // those of the file too; otherwise slots stay what they are
};

// A name with the user's source line.
struct NameAt {
  template <std::convertible_to<std::string_view> T>
  NameAt(const T& given, CallSite at = CallSite::here())  // NOLINT: implicit is the point
      : name(given), site(at) {}
  std::string_view name;
  CallSite site;
};

// The named parameters of a model, its untrained state, and the slots that optimizers keep with
// them. A handle: copies and scopes share one set. Eager parameters are tensors on a device, leaves
// that gradients accumulate in; those of a graph are declarations, of which each session has values
// of its own. Used by one thread at a time.
//
// A scope is a handle to a part of the set, for everything: what begins with its name is what it
// declares, lists, counts, finds, saves and loads, and what an optimizer given the scope updates.
//
//   Parameters encoder = params.scope("encoder");
//   encoder.load("pretrained.safetensors");
//   optim::Adam().minimize(loss, params.scope("head"));  // the encoder is frozen
//
// Slots belong to (scope, rule, name of the optimizer); what is equal in all three is the same
// optimizer, however often it is made, and what differs shares nothing. Adam on the scope "head"
// keeps "head.weight/head.adam.first_moment" and "head.adam/step", on the whole set
// "head.weight/adam.first_moment" and "adam/step"; with the name "slow", "adam:slow/step". Where
// scopes overlap, a parameter in both is updated by each of their optimizers in turn, each with
// moments of its own.
class Parameters {
 public:
  using Entry = NamedTensor;

  Parameters() = delete;  // they belong to a device or to a graph: Parameters params(device)
  // Parameters are floating. Throws Error for another dtype, or a name with a '/' in it.
  explicit Parameters(const Device& device, Seed seed = {}, DType dtype = DType::f32,
                      CallSite site = CallSite::here());
  Parameters(const Device& device, Seed seed, const ParametersOptions& options,
             CallSite site = CallSite::here());
  // Of a graph, which converts to its recorder.
  explicit Parameters(detail::Ref<Recorder> graph, Seed seed = {}, DType dtype = DType::f32,
                      CallSite site = CallSite::here());
  Parameters(detail::Ref<Recorder> graph, Seed seed, const ParametersOptions& options,
             CallSite site = CallSite::here());

  // The part of the set whose names begin with this handle's and "name.". Throws Error for an empty
  // name or one with a '/' in it.
  Parameters scope(NameAt name) const;
  // The whole set that this is a part of.
  Parameters root() const;
  // What the names of this part begin with: "encoder.0.", or nothing.
  const std::string& prefix() const noexcept { return prefix_; }

  // A new parameter of the set's dtype. Throws Error for a name used twice, empty or with a '/' (as
  // slots have), or what is no distribution, ShapeError for an open dimension, OutOfMemory.
  Tensor declare(std::string_view name, const Shape& shape, const Initializer& initializer,
                 CallSite site = CallSite::here()) const;
  // A new tensor that belongs to the model and is not trained: running statistics, an average.
  // Named, initialised, copied, saved and loaded like a parameter and counted in its category; no
  // optimizer sees it. Assign to it; in eager it has no history. The set's dtype unless given;
  // integers and the like start at zero. Throws as declare does.
  Tensor state(std::string_view name, const Shape& shape,
               const Initializer& initializer = initializers::zeros(),
               std::optional<DType> dtype = {}, CallSite site = CallSite::here()) const;

  // The parameters below this handle, in the order of declaration: for (auto& [name, tensor] :
  // params.entries()), where names are full names; scope[entry.local()] finds one again.
  const std::vector<Entry>& entries() const;
  // The untrained state.
  const std::vector<Entry>& states() const;
  // The parameters without their names, in the same order: what gradients() takes.
  Tensors tensors() const;
  // The slots, in the order they were made: those whose names begin as this handle's do, which are
  // the ones beside its parameters and the counts of optimizers that were given it or a part of it.
  const std::vector<Entry>& slots() const;
  // A parameter, state or slot by its name below this handle. Throws Error naming what there is,
  // the nearest names first.
  Tensor operator[](NameAt name) const;
  bool contains(std::string_view name) const;
  bool is_symbolic() const noexcept;
  DType dtype() const noexcept;
  // Throws Error for a graph's parameters.
  Device device(CallSite site = CallSite::here()) const;
  // The number of scalar parameters; state and slots are not counted.
  std::int64_t count() const;

  // The slots beside each of the parameters in turn, then those of `others`, whose names are full
  // names; made (zero) where they do not exist yet. All or nothing: names and shapes are checked
  // before any is made, and if memory runs out, none has been. Throws Error if one exists with
  // another shape or dtype, and for a name without '/'.
  Tensors find_or_make_slots(const SlotsBeside& beside, std::span<const SlotRequest> others,
                             CallSite site = CallSite::here()) const;
  Tensors find_or_make_slots(std::span<const SlotRequest> requests,
                             CallSite site = CallSite::here()) const {
    return find_or_make_slots({}, requests, site);
  }
  // How many slots the whole set has, and taking back those made after the first `count`: what a
  // step that failed half-way leaves nothing with. A graph's declarations stay.
  std::size_t slot_count() const noexcept;
  void drop_slots_after(std::size_t count) const noexcept;

  // Whether optimizers update the parameters below this handle that there are, as they do at first.
  // What is frozen costs a step no gradient in minimize(); backward() and gradients() go on without
  // a difference. In a graph it counts when the update is built. Files do not keep it. Adam counts
  // its steps for the whole set, not for each parameter: one that is thawed late starts without the
  // correction for small counts, with the default options in steps 3 to 7 times as long for the
  // first 100 (an optimizer of its own, by scope or .name, begins at zero). Throws Error where
  // there is neither parameter nor state, and for what with() has returned.
  void set_trainable(bool trainable, CallSite site = CallSite::here()) const;
  bool is_trainable(const Entry& entry) const noexcept;

  // The same names with other tensors in place of the parameters, one for each of entries() and of
  // its shape and dtype, concrete or symbolic. A model that is made of these parameters declares
  // nothing: it is the same model, called with those weights, and gradients flow to whatever they
  // were computed from, in both modes (Finn, Abbeel and Levine, "Model-agnostic meta-learning",
  // ICML 2017):
  //
  //   Tensors fast = params.tensors();
  //   const Tensors g = gradients(mse(model(x), y), fast, {.create_graph = true});
  //   for (std::size_t i = 0; i < g.size(); ++i) fast[i] -= 0.1 * g[i];
  //   const Model adapted(params.with(fast), ...);
  //   mse(adapted(other_x), other_y).backward();  // to the parameters, through the step
  //
  // State is shared with the original; what is frozen now is so there. Optimizers, files,
  // set_trainable() and copy_from() refuse what this returns. Throws Error for another number of
  // tensors and for one on another device, ShapeError for another shape or dtype; so does declare()
  // of a name that is not there, or in another shape.
  Parameters with(const Tensors& substitutes, CallSite site = CallSite::here()) const;

  // Frees the accumulated gradients. Nothing to do for a graph.
  void zero_grad() const;

  // Writes the values of `other`'s parameters and state into this handle's of the same names, each
  // name taken below its handle: a target network from the online one, an average from what it
  // follows. Slots stay. Eager only (a session copies a graph's). Throws Error naming the first
  // that one of the two lacks, ShapeError the first that differs in shape or dtype; then nothing
  // has been written.
  void copy_from(const Parameters& other, CallSite site = CallSite::here()) const;

  // Values, state and slots under their full names, as a safetensors file, written under a
  // temporary name and renamed when complete; of the whole set, with the thread's random state.
  // Eager only (a graph's values belong to a session). Throws FileError.
  void save(const std::string& file, CallSite site = CallSite::here()) const;
  // Reads what save, or a session's, wrote: the values of every parameter and state below this
  // handle, in place. Slots become those of the file: made as needed, zero where it has none. What
  // else the file has is left alone, and of the random state, if this is a scope. Throws FileError
  // naming the first parameter that is missing or has another shape or dtype, OutOfMemory; then
  // nothing has changed. Takes memory of the host for a second copy of the values meanwhile.
  void load(const std::string& file, const RestoreOptions& options = {},
            CallSite site = CallSite::here()) const;
  // The same with the position of a DataLoader, which goes on where it was, with the next batch of
  // that pass, also where `break` has left its loop (see DataLoader). save throws Error where the
  // position is empty, load FileError where the file has none, or that of a loader of other data or
  // batches; then nothing has changed.
  void save(const std::string& file, const Resumable& loader,
            CallSite site = CallSite::here()) const;
  void load(const std::string& file, Resumable& loader, const RestoreOptions& options = {},
            CallSite site = CallSite::here()) const;

 private:
  friend class detail::Declaring;
  friend void detail::require_own(const Parameters&, const char*);
  struct State;
  Parameters(std::shared_ptr<State> state, std::string prefix);
  void save_with(const std::string& file, const Resumable* loader) const;
  void load_with(const std::string& file, Resumable* loader, const RestoreOptions& options) const;
  static std::shared_ptr<State> make_state(Seed seed, const ParametersOptions& options,
                                           CallSite site);
  Tensor find_substitute(const std::string& full, const Spec& spec, bool trained,
                         CallSite site) const;
  Tensor add(std::string_view name, const Spec& spec, const Initializer& initializer, bool trained,
             CallSite site) const;
  std::shared_ptr<State> state_;
  std::string prefix_;
};

namespace detail {
// Throws Error where the set or scope has neither parameters nor state: what was asked would do
// nothing, most often since the name is misspelt or the model does not exist yet. And as
// require_own.
void require_any(const Parameters& parameters, const char* what);
// Throws Error for what Parameters::with() has returned.
void require_own(const Parameters& parameters, const char* what);
}  // namespace detail

}  // namespace ebb
