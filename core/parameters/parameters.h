#pragma once
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ebb/core/device/world.h"
#include "ebb/core/files/resumable.h"
#include "ebb/core/parameters/initializer.h"
#include "ebb/core/parameters/named_tensors.h"
#include "ebb/core/tensor/recorder.h"
#include "ebb/core/tensor/tensor.h"

namespace ebb {

class Parameters;
namespace detail {
class Declaring;
void require_own(const Parameters& parameters, const char* what);
}  // namespace detail

// A slot to be found or made: state that an optimizer keeps, starting at zero. Its name has a '/',
// unlike a parameter's: "hidden.weight/adam.first_moment" stands beside that parameter, "adam/step"
// by itself. Accumulated gradients (names that end in ".accumulated" or "/samples") count as
// gradients, all other slots as optimizer state.
struct SlotRequest {
  std::string name;
  Spec spec;
};

// A slot beside a parameter, of the same shape.
struct SlotBeside {
  std::string name;  // the name after the '/': "adam.first_moment"
  DType dtype;
};
// Slots to be found or made beside some parameters. Where the set's world shards them, each is this
// rank's share: as many elements of the flat parameter, one axis.
struct SlotsBeside {
  std::span<const std::size_t> parameters;  // positions in entries()
  std::span<const SlotBeside> slots;        // beside each parameter
};

struct ParametersOptions {
  DType dtype = DType::f32;
  // Begins every name of the set, as a scope's does. Two sets of one graph may both have none, but
  // saving, restoring or copying a whole session needs names that differ.
  std::string name = {};
  // The world whose ranks all have the set: they save it together, and each keeps its share of what
  // the world's .sharding says. A parameter in shares is whole while its layer uses it; reading its
  // values is a collective.
  std::optional<distributed::World> world = {};
};

struct RestoreOptions {
  bool slots = true;  // also restores the slots in the file; otherwise slots stay as they are
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
// that gradients accumulate in. Parameters of a graph are declarations, and each session has values
// of its own. Used by one thread at a time.
//
// A scope is a handle to the part of the set whose names begin with its own, for everything:
// declaring, listing, counting, finding, saving, loading and optimizing.
//
//   Parameters encoder = params.scope("encoder");
//   encoder.load("pretrained.safetensors");
//   optim::Adam().minimize(loss, params.scope("head"));  // the encoder is frozen
//
// Slots belong to (scope, rule, name of the optimizer). Optimizers equal in all three are one,
// however often made; others share nothing. Adam on the scope "head" keeps
// "head.weight/head.adam.first_moment" and "head.adam/step", on the whole set
// "head.weight/adam.first_moment" and "adam/step"; with the name "slow", "adam:slow/step". A
// parameter in two overlapping scopes is updated by both optimizers in turn, each with its own
// moments.
class Parameters {
 public:
  using Entry = NamedTensor;

  Parameters() = delete;  // they belong to a device or to a graph: Parameters params(device)
  // Parameters must be floating. Throws Error for another dtype, or a name with a '/' in it.
  explicit Parameters(const Device& device, Seed seed = {}, DType dtype = DType::f32,
                      CallSite site = CallSite::here());
  Parameters(const Device& device, Seed seed, const ParametersOptions& options,
             CallSite site = CallSite::here());
  // Parameters of a graph, which converts to its recorder.
  explicit Parameters(detail::Ref<Recorder> graph, Seed seed = {}, DType dtype = DType::f32,
                      CallSite site = CallSite::here());
  Parameters(detail::Ref<Recorder> graph, Seed seed, const ParametersOptions& options,
             CallSite site = CallSite::here());

  // The part of the set whose names begin with this handle's prefix and "name.". Throws Error for
  // an empty name or one with a '/' in it.
  Parameters scope(NameAt name) const;
  // The whole set that this is a part of.
  Parameters root() const;
  // Prefix of the names in this part: "encoder.0.", or empty.
  const std::string& prefix() const noexcept { return prefix_; }
  // Layer that reports name for this part: "encoder.0", as CallSite::in() takes it.
  unsigned layer() const noexcept { return layer_; }

  // Declares a parameter of the set's dtype. Throws Error for a name that is taken, empty or has a
  // '/' (as slots have) and for an initializer that is no distribution; ShapeError for an open
  // dimension, OutOfMemory.
  Tensor declare(std::string_view name, const Shape& shape, const Initializer& initializer,
                 CallSite site = CallSite::here()) const;
  // Declares a tensor that belongs to the model but is not trained: running statistics, an average.
  // It is named, initialised, copied, saved and loaded like a parameter and counted in its
  // category; no optimizer sees it. Assign to it; in eager it has no history. The set's dtype
  // unless given; other than floating dtypes start at zero. Throws as declare does.
  Tensor state(std::string_view name, const Shape& shape,
               const Initializer& initializer = initializers::zeros(),
               std::optional<DType> dtype = {}, CallSite site = CallSite::here()) const;

  // The parameters below this handle, in the order of declaration: for (auto& [name, tensor] :
  // params.entries()), where names are full names; scope[entry.local()] finds one again.
  const std::vector<Entry>& entries() const;
  // The untrained states below this handle.
  const std::vector<Entry>& states() const;
  // The parameters without their names, in the same order, as gradients() takes them.
  Tensors tensors() const;
  // Slots in the order in which they were made, with names that begin with this handle's prefix:
  // the slots beside its parameters, and the counts of optimizers on it or on a part of it.
  const std::vector<Entry>& slots() const;
  // A parameter, state or slot by its name below this handle. For an unknown name throws Error
  // listing the existing ones, nearest first.
  Tensor operator[](NameAt name) const;
  bool contains(std::string_view name) const;
  bool is_symbolic() const noexcept;
  DType dtype() const noexcept;
  const std::optional<distributed::World>& world() const noexcept;
  // Throws Error for a graph's parameters.
  Device device(CallSite site = CallSite::here()) const;
  // The number of scalar parameters; state and slots are not counted.
  std::int64_t count() const;

  // Finds the slots beside each of the parameters in turn, then `others`, by full name; missing
  // ones are made, with zeros. All or nothing: names and shapes are checked before any slot is
  // made, and running out of memory leaves none. Throws Error if a slot exists with another shape
  // or dtype, and for a name without '/'.
  Tensors find_or_make_slots(const SlotsBeside& beside, std::span<const SlotRequest> others,
                             CallSite site = CallSite::here()) const;
  Tensors find_or_make_slots(std::span<const SlotRequest> requests,
                             CallSite site = CallSite::here()) const {
    return find_or_make_slots({}, requests, site);
  }
  // The number of slots in the whole set. A step that fails half-way takes back those it has made
  // with drop_slots_after(). A graph's declarations stay.
  std::size_t slot_count() const noexcept;
  void drop_slots_after(std::size_t count) const noexcept;

  // Sets whether optimizers update the existing parameters below this handle; they do at first.
  // minimize() computes no gradient for frozen parameters; backward() and gradients() ignore the
  // setting. In a graph it counts when the update is built. It is not saved.
  //
  // Adam counts its steps for the whole set, not for each parameter. A parameter thawed late gets
  // no correction for small counts: with the default options its first 100 steps are 3 to 7 times
  // as long. (An optimizer of its own, by scope or .name, begins at zero.) Throws Error if there is
  // neither parameter nor state, and for a result of with().
  void set_trainable(bool trainable, CallSite site = CallSite::here()) const;
  bool is_trainable(const Entry& entry) const noexcept;

  // A set with these names and other tensors as parameters, one for each of entries(), of its shape
  // and dtype, concrete or symbolic. A model made of the result declares nothing: it is the same
  // model, called with these weights. Gradients flow on to whatever the weights were computed from,
  // in both modes (Finn, Abbeel and Levine, "Model-agnostic meta-learning", ICML 2017):
  //
  //   Tensors fast = params.tensors();
  //   const Tensors g = gradients(mse(model(x), y), fast, {.create_graph = true});
  //   for (std::size_t i = 0; i < g.size(); ++i) fast[i] -= 0.1 * g[i];
  //   const Model adapted(params.with(fast), ...);
  //   mse(adapted(other_x), other_y).backward();  // to the parameters, through the step
  //
  // State is shared with the original, and frozen names are copied now. Optimizers, files,
  // set_trainable() and copy_from() refuse the result. Throws Error for another number of tensors
  // and for a tensor on another device, ShapeError for another shape or dtype; so does declare()
  // for an unknown name or another shape.
  Parameters with(const Tensors& substitutes, CallSite site = CallSite::here()) const;

  // Frees the accumulated gradients. Does nothing for a graph. Throws Error for a scope that has
  // neither parameters nor states.
  void zero_grad(CallSite site = CallSite::here()) const;

  // Copies the values of `other`'s parameters and state to those here with the same names below the
  // handles: a target network from the online network, or an average from its model. Slots stay.
  // Eager only (a session copies a graph's). Throws Error naming the first that one side lacks,
  // ShapeError the first that differs in shape or dtype; then nothing has been written.
  void copy_from(const Parameters& other, CallSite site = CallSite::here()) const;

  // Saves values, state and slots under their full names as a safetensors file, with the thread's
  // random state if this is the whole set. The file is written under a temporary name and renamed
  // when complete. Eager only (a graph's values belong to a session). Throws FileError.
  void save(const std::string& file, CallSite site = CallSite::here()) const {
    save_with(file, nullptr, site);
  }
  // Loads a file of save() or of a session's: the values of every parameter and state below this
  // handle, in place. Slots become the file's: made as needed, zero if it has none. Other contents
  // of the file are ignored, and for a scope the random state too. Throws FileError naming the
  // first parameter that is missing or has another shape or dtype, OutOfMemory; then nothing has
  // changed. Takes host memory for a second copy of the values meanwhile.
  void load(const std::string& file, const RestoreOptions& options = {},
            CallSite site = CallSite::here()) const {
    load_with(file, nullptr, options, site);
  }
  // With the position of a DataLoader, which goes on with the next batch of its pass, even if
  // `break` has left the loop (see DataLoader). save throws Error if the position is empty. load
  // throws FileError if the file has no position, or one of a loader with other data or batches;
  // then nothing has changed.
  void save(const std::string& file, const Resumable& loader,
            CallSite site = CallSite::here()) const {
    save_with(file, &loader, site);
  }
  void load(const std::string& file, Resumable& loader, const RestoreOptions& options = {},
            CallSite site = CallSite::here()) const {
    load_with(file, &loader, options, site);
  }

 private:
  friend class detail::Declaring;
  friend void detail::require_own(const Parameters&, const char*);
  struct State;
  Parameters(std::shared_ptr<State> state, std::string prefix);
  void save_with(const std::string& file, const Resumable* loader, CallSite site) const;
  void load_with(const std::string& file, Resumable* loader, const RestoreOptions& options,
                 CallSite site) const;
  static std::shared_ptr<State> make_state(Seed seed, const ParametersOptions& options,
                                           CallSite site);
  Tensor find_substitute(const std::string& full, const Spec& spec, bool trained) const;
  Tensor add(std::string_view name, const Spec& spec, const Initializer& initializer, bool trained,
             CallSite site) const;
  std::shared_ptr<State> state_;
  std::string prefix_;
  unsigned layer_ = detail::layer_number(prefix_);
};

namespace detail {
// Throws Error if the set or scope has neither parameters nor state. The call would do nothing,
// usually because a name is misspelt or the model does not exist yet. Includes require_own.
void require_any(const Parameters& parameters, const char* what);
// Throws Error for a result of Parameters::with().
void require_own(const Parameters& parameters, const char* what);
// For copy_from(): calls match(here, there) for parameters and states of equal names below the two
// handles. Throws Error naming the first that one of them lacks.
void for_each_pair(const Parameters& to, const Parameters& from,
                   const std::function<void(const Parameters::Entry&, const Tensor&)>& match);
}  // namespace detail

}  // namespace ebb
