#include "ebb/core/parameters.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "ebb/core/checkpoint.h"
#include "ebb/core/error.h"
#include "ebb/core/tensor_impl.h"

namespace ebb {

using detail::message;

namespace {

struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const noexcept {
    return std::hash<std::string_view>()(name);
  }
};

// Tensors in the order they came, found by name.
class Named {
 public:
  const std::vector<Parameters::Entry>& all() const noexcept { return all_; }
  const Tensor* find(std::string_view name) const noexcept {
    const auto found = index_.find(name);
    return found == index_.end() ? nullptr : &all_[found->second].tensor;
  }
  // All or nothing.
  void add(std::vector<Parameters::Entry> entries) {
    const std::size_t before = all_.size();
    try {
      for (Parameters::Entry& entry : entries) {
        index_.emplace(entry.name, all_.size());
        all_.push_back(std::move(entry));
      }
    } catch (...) {
      for (const Parameters::Entry& entry : entries) index_.erase(entry.name);
      shrink(before);
      throw;
    }
  }
  void shrink(std::size_t count) noexcept {
    while (all_.size() > count) {
      if (const auto found = index_.find(all_.back().name); found != index_.end())
        index_.erase(found);
      all_.pop_back();
    }
  }

 private:
  std::vector<Parameters::Entry> all_;
  std::unordered_map<std::string, std::size_t, NameHash, std::equal_to<>> index_;
};

void fill_zero(const Tensor& tensor) {
  if (!tensor.device().is_simulated() && tensor.bytes())
    std::memset(detail::data(tensor), 0, tensor.bytes());
}

// Slots have a '/' in their name, parameters have none.
bool is_slot(std::string_view name) noexcept { return name.find('/') != std::string_view::npos; }

std::string quoted(std::string_view name) { return '"' + std::string(name) + '"'; }

}  // namespace

struct Parameters::State {
  std::optional<Device> device;  // or
  detail::Ref<Recorder> graph;
  Seed seed;
  DType dtype = DType::f32;
  Named parameters;
  Named slots;

  void require_concrete(const char* what) const {
    if (graph)
      throw Error(std::string("[") + what +
                  "] the parameters of a graph have no values: each Session has its own, and "
                  "saves and restores them");
  }

  // What there is, for a message about what there is not.
  std::string names() const {
    constexpr std::size_t kMost = 12;
    std::string text;
    const auto list = [&](const Named& named) {
      for (std::size_t i = 0; i < named.all().size() && i < kMost; ++i)
        text += (text.empty() ? "" : ", ") + named.all()[i].name;
      if (named.all().size() > kMost)
        text += ", and " + std::to_string(named.all().size() - kMost) + " more";
    };
    list(parameters);
    list(slots);
    return text.empty() ? "there are none yet" : "there are " + text;
  }

  Tensor make_slot(const SlotRequest& request, CallSite site) const {
    if (graph)
      return graph->declare({.name = request.name,
                             .spec = request.spec,
                             .initializer = initializers::zeros(),
                             .seed = seed,
                             .category = request.category,
                             .site = site});
    Tensor slot =
        detail::allocate(request.spec, *device, request.category, {"slot", site.file, site.line});
    fill_zero(slot);
    return slot;
  }
};

Parameters::Parameters(std::shared_ptr<State> state, std::string prefix)
    : state_(std::move(state)), prefix_(std::move(prefix)) {}

Parameters::Parameters(const Device& device, Seed seed, DType dtype)
    : state_(std::make_shared<State>()) {
  if (dtype != DType::f32 && dtype != DType::f64)
    throw Error(std::string("[parameters] are f32 or f64, not ") + name(dtype));
  state_->device = device;
  state_->seed = seed;
  state_->dtype = dtype;
}

Parameters::Parameters(detail::Ref<Recorder> graph, Seed seed, DType dtype)
    : state_(std::make_shared<State>()) {
  if (dtype != DType::f32 && dtype != DType::f64)
    throw Error(std::string("[parameters] are f32 or f64, not ") + name(dtype));
  state_->graph = std::move(graph);
  state_->seed = seed;
  state_->dtype = dtype;
}

Parameters Parameters::scope(std::string_view name) const {
  if (name.empty() || is_slot(name))
    throw Error("[parameters] " + quoted(name) + " cannot name a scope: it is empty or has a '/'");
  return Parameters(state_, prefix_ + std::string(name) + '.');
}

Tensor Parameters::declare(std::string_view name, const Shape& shape,
                           const Initializer& initializer, const char* file, unsigned line) const {
  const CallSite site{file, line};
  if (name.empty() || is_slot(name))
    throw Error(message("parameters",
                        quoted(name) + " cannot name a parameter: it is empty or has a '/'", site));
  const std::string full = prefix_ + std::string(name);
  if (state_->parameters.find(full))
    throw Error(message(
        "parameters",
        "there is a parameter " + quoted(full) + " already; give each layer a scope() of its own",
        site));
  if (shape.is_open())
    throw ShapeError(message(
        "parameters",
        "the shape " + shape.to_string() + " of " + quoted(full) + " has an open dimension", site));
  if (!shape.is_countable())
    throw ShapeError(message("parameters", quoted(full) + ": " + detail::too_large(shape), site));
  const Spec spec{state_->dtype, shape};
  Tensor tensor;
  if (state_->graph) {
    tensor = state_->graph->declare({.name = full,
                                     .spec = spec,
                                     .initializer = initializer,
                                     .seed = state_->seed,
                                     .category = memory::Category::parameter,
                                     .site = site});
  } else {
    tensor = detail::allocate(spec, *state_->device, memory::Category::parameter,
                              {"parameter", site.file, site.line});
    if (!state_->device->is_simulated())
      detail::draw_initial_values(initializer, state_->seed, full, spec, detail::data(tensor));
    tensor = tensor.with_grad();
  }
  state_->parameters.add({{full, tensor}});
  return tensor;
}

const std::vector<Parameters::Entry>& Parameters::entries() const noexcept {
  return state_->parameters.all();
}
const std::vector<Parameters::Entry>& Parameters::slots() const noexcept {
  return state_->slots.all();
}

Tensor Parameters::operator[](std::string_view name) const {
  if (const Tensor* tensor = state_->parameters.find(name)) return *tensor;
  if (const Tensor* tensor = state_->slots.find(name)) return *tensor;
  throw Error("[parameters] there is no " + quoted(name) + "; " + state_->names());
}

bool Parameters::contains(std::string_view name) const noexcept {
  return state_->parameters.find(name) || state_->slots.find(name);
}

bool Parameters::is_symbolic() const noexcept { return static_cast<bool>(state_->graph); }
DType Parameters::dtype() const noexcept { return state_->dtype; }

Device Parameters::device() const {
  if (!state_->device)
    throw Error("[parameters] a graph's parameters are on no device before a Session runs it");
  return *state_->device;
}

std::int64_t Parameters::count() const noexcept {
  std::int64_t count = 0;
  for (const Entry& entry : entries()) count += entry.tensor.elements();
  return count;
}

Tensors Parameters::find_or_make_slots(std::span<const SlotRequest> requests, CallSite site) const {
  Tensors found;
  std::vector<Entry> made;
  for (const SlotRequest& request : requests) {
    if (!is_slot(request.name))
      throw Error(
          message("slots", quoted(request.name) + " cannot name a slot: it has no '/'", site));
    const Tensor* slot = state_->slots.find(request.name);
    if (!slot) {
      made.push_back({request.name, state_->make_slot(request, site)});
      found.push_back(made.back().tensor);
      continue;
    }
    const Spec& spec = slot->impl()->spec;
    if (!(spec == request.spec))
      throw Error(message("slots",
                          "the slot " + quoted(request.name) + " is " + spec.to_string() +
                              ", but " + request.spec.to_string() + " is wanted",
                          site));
    // load() cannot know the category.
    if (slot->impl()->storage && slot->impl()->storage->category() != request.category)
      slot->impl()->storage->recategorise(request.category);
    found.push_back(*slot);
  }
  if (!made.empty()) state_->slots.add(std::move(made));
  return found;
}

void Parameters::drop_slots_after(std::size_t count) const noexcept {
  if (!state_->graph) state_->slots.shrink(count);
}

void Parameters::zero_grad() const {
  for (const Entry& entry : entries()) entry.tensor.zero_grad();
}

void Parameters::save(const std::string& file) const {
  state_->require_concrete("save");
  if (state_->device->is_simulated())
    throw SimulatedRead("[save] parameters on " + state_->device->name() +
                        " have no values: the device is simulated");
  std::vector<safetensors::View> views;
  for (const auto* named : {&entries(), &slots()})
    for (const Entry& entry : *named)
      views.push_back({entry.name, entry.tensor.impl()->spec, detail::data(entry.tensor)});
  detail::write_checkpoint(file, views);
}

void Parameters::load(const std::string& file) const {
  state_->require_concrete("load");
  const safetensors::File checkpoint = detail::open_checkpoint(file);
  const auto require = [&](const Entry& here, const safetensors::File::Entry* there) {
    const Spec& spec = here.tensor.impl()->spec;
    if (!there)
      throw FileError("[load] " + file + " has no parameter " + quoted(here.name) + ", which is " +
                      spec.to_string() + " here");
    if (!(there->spec == spec))
      throw FileError("[load] " + quoted(here.name) + " is " + there->spec.to_string() + " in " +
                      file + ", but " + spec.to_string() + " here");
  };
  for (const Entry& entry : entries()) require(entry, checkpoint.find(entry.name));

  // Slots that are not here yet: beside one of our parameters, or beside none of the file's.
  std::vector<SlotRequest> missing;
  for (const safetensors::File::Entry& there : checkpoint.entries()) {
    if (!is_slot(there.name)) continue;
    const std::string owner = there.name.substr(0, there.name.find('/'));
    if (const Tensor* here = state_->slots.find(there.name))
      require({there.name, *here}, &there);
    else if (state_->parameters.find(owner) || !checkpoint.find(owner))
      missing.push_back({there.name, there.spec});
  }

  // Read twice, so that a file that fails half-way changes nothing.
  std::size_t largest = 0;
  for (const safetensors::File::Entry& there : checkpoint.entries())
    largest = std::max(largest, there.spec.bytes());
  std::vector<std::byte> values(largest);
  for (const safetensors::File::Entry& there : checkpoint.entries())
    checkpoint.read(there.name, values.data());
  find_or_make_slots(missing, {});
  for (const auto* named : {&entries(), &slots()}) {
    for (const Entry& entry : *named) {
      entry.tensor.impl()->storage->bump_version();
      if (state_->device->is_simulated()) continue;
      std::fill(values.begin(), values.end(), std::byte{});
      if (checkpoint.find(entry.name)) checkpoint.read(entry.name, values.data());
      if (const std::size_t bytes = entry.tensor.bytes())
        std::memcpy(detail::data(entry.tensor), values.data(), bytes);
    }
  }
  detail::restore_generator(checkpoint);
}

}  // namespace ebb
