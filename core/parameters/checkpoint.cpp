#include "ebb/core/parameters/checkpoint.h"

#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/base/nearest.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/device/simulation.h"
#include "ebb/core/random/random.h"

namespace ebb::detail {

namespace {
constexpr const char* kFormat = "ebb.format";
constexpr const char* kVersion = "1";
constexpr const char* kKey = "random.key";
constexpr const char* kCounter = "random.counter";
constexpr std::string_view kLoader = "loader.";
}  // namespace

void write_checkpoint(const std::string& file, std::span<const SavedValue> values,
                      const Device& device, RandomState random, const Resumable* loader,
                      const std::optional<distributed::World>& world) {
  safetensors::Metadata metadata{{kFormat, kVersion}};
  if (random == RandomState::saved) {
    metadata.emplace(kKey, std::to_string(generator().key));
    metadata.emplace(kCounter, std::to_string(generator().counter));
  }
  if (loader) {
    const Resumable::Position position = loader->position();
    if (position.empty())
      refuse("save", "the loader's position() is empty, and " + file +
                         " could not be told from one that was saved without a loader");
    for (const auto& [name, text] : position) metadata.emplace(std::string(kLoader) + name, text);
  }
  std::vector<safetensors::View> views;
  const auto simulation = device.runtime().simulation();
  for (const SavedValue& value : values) {
    views.push_back(value);
    if (!value.whole || !simulation) continue;
    views.back().spec.shape = *value.whole;
    const Status counted = world->communicator().count(collecting(views.back()));
    if (!counted.ok()) refuse("save", counted.problem);
  }
  if (simulation)
    simulation->save(file, safetensors::check_write(file, views, metadata));
  else if (world)
    write_with_ranks(*world, file, values, metadata);
  else
    safetensors::write(file, views, metadata);
  if (const auto recorder = device.runtime().allocator().recorder()) recorder->mark("save");
}

static safetensors::File open_file(const std::string& file, const Device& device) {
  const auto simulation = device.runtime().simulation();
  const auto header = simulation ? simulation->saved(file) : std::nullopt;
  return header ? safetensors::File::of_header(*header) : safetensors::File(file);
}

safetensors::File open_checkpoint(const std::string& file, const Device& device) {
  safetensors::File checkpoint = open_file(file, device);
  const auto version = checkpoint.metadata().find(kFormat);
  // A file of another program has no version; its tensors can be loaded all the same.
  if (version != checkpoint.metadata().end() && version->second != kVersion)
    refuse_file(file + " is an ebb checkpoint of version " + version->second +
                "; this ebb reads version " + kVersion);
  return checkpoint;
}

std::string names_in(const safetensors::File& checkpoint, std::string_view wanted) {
  std::vector<std::string> names;
  for (const safetensors::File::Entry& entry : checkpoint.entries())
    if (entry.name.find('/') == std::string::npos) names.push_back(entry.name);
  return names.empty() ? "it has no parameters" : "it has " + nearest(wanted, names);
}

void read_checkpoint(const safetensors::File& checkpoint, const std::string& name, void* to,
                     const distributed::World* shared_by) {
  if (!shared_by) return checkpoint.read(name, to);
  const std::int64_t all = checkpoint.find(name)->spec.shape.elements();
  const int size = shared_by->size(), rank = shared_by->rank();
  checkpoint.read(name, to, share_begin(all, size, rank), share_of(all, size, rank));
}

void restore_generator(const safetensors::File& checkpoint) {
  Generator state;
  if (read_number(checkpoint.metadata(), kKey, state.key) &&
      read_number(checkpoint.metadata(), kCounter, state.counter))
    generator() = state;
}

Resumable::Position loader_position(const safetensors::File& checkpoint, const std::string& file,
                                    const Resumable& loader) {
  Resumable::Position position;
  for (const auto& [name, text] : checkpoint.metadata())
    if (name.starts_with(kLoader)) position.emplace(name.substr(kLoader.size()), text);
  if (position.empty())
    refuse_file(file +
                " has no loader's position: it was saved without one, not as save(file, loader)");
  loader.check(position, file);
  return position;
}

}  // namespace ebb::detail
