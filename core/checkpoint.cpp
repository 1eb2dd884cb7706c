#include "ebb/core/checkpoint.h"

#include <charconv>

#include "ebb/core/error.h"

namespace ebb::detail {

namespace {

[[noreturn]] void fail(const std::string& file, const std::string& text) {
  throw FileError("[load] " + file + ": " + text);
}

std::uint64_t number(const safetensors::Metadata& metadata, const std::string& key,
                     const std::string& file) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) fail(file, "the metadata lacks \"" + key + '"');
  const std::string& text = found->second;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    fail(file, "the metadata's \"" + key + "\" is not a number: \"" + text + '"');
  return value;
}

}  // namespace

safetensors::Metadata checkpoint_metadata(const Generator& generator) {
  return {{"ebb.format", kCheckpointFormat},
          {"random.key", std::to_string(generator.key)},
          {"random.counter", std::to_string(generator.counter)}};
}

Checkpoint::Checkpoint(const std::string& file) : name_(file), file_(file) {
  const safetensors::Metadata& metadata = file_.metadata();
  const auto format = metadata.find("ebb.format");
  if (format == metadata.end()) return;
  if (format->second != kCheckpointFormat)
    fail(file, "was written in format " + format->second + "; this ebb reads format " +
                   kCheckpointFormat);
  generator_ =
      Generator{number(metadata, "random.key", file), number(metadata, "random.counter", file)};
}

void Checkpoint::require(const std::string& name, const Spec& spec) const {
  const safetensors::File::Entry* entry = file_.find(name);
  if (!entry) fail(name_, "has no tensor \"" + name + "\", which should be " + spec.to_string());
  if (!(entry->spec == spec))
    fail(name_,
         '"' + name + "\" is " + entry->spec.to_string() + ", but should be " + spec.to_string());
}

std::vector<safetensors::File::Entry> Checkpoint::slots(
    const std::function<bool(const std::string&)>& has_parameter) const {
  std::vector<safetensors::File::Entry> slots;
  for (const safetensors::File::Entry& entry : file_.entries()) {
    if (!is_slot(entry.name)) continue;
    const std::string owner = entry.name.substr(0, entry.name.find('/'));
    if (has_parameter(owner) || !file_.find(owner)) slots.push_back(entry);
  }
  return slots;
}

}  // namespace ebb::detail
