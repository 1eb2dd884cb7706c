#include "ebb/core/parameters/named_tensors.h"

#include "ebb/core/base/error.h"

namespace ebb::detail {

unsigned layer_number(std::string_view prefix) {
  if (prefix.empty()) return 0;
  const std::string_view name = prefix.substr(0, prefix.size() - 1);
  static std::mutex mutex;
  static std::size_t used = 1;
  static auto& numbers = *new std::unordered_map<std::string_view, unsigned>;
  const std::lock_guard lock(mutex);
  if (const auto known = numbers.find(name); known != numbers.end()) return known->second;
  if (name.size() >= sizeof layer_names - used) return 0;
  const auto number = static_cast<unsigned>(used);
  char* const copy = layer_names + number;
  copy[name.copy(copy, name.size())] = 0;  // a longer name may lie there, which had no memory below
  numbers.emplace(std::string_view(copy, name.size()), number);
  used += name.size() + 1;
  return number;
}

std::size_t NamedTensors::position(std::string_view name) const noexcept {
  const auto found = positions_.find(name);
  return found == positions_.end() ? kNone : found->second;
}

const Tensor* NamedTensors::find(std::string_view name) const noexcept {
  const std::size_t at = position(name);
  return at == kNone ? nullptr : &all_[at].tensor;
}

const NamedTensors::Part& NamedTensors::part(std::string_view prefix) {
  const std::lock_guard lock(parts_mutex_);
  Part& part = part_of(prefix);
  while (part.tensors.size() < part.positions.size()) {
    part.tensors.push_back(all_[part.positions[part.tensors.size()]]);
    part.tensors.back().prefix_bytes_ = prefix.size();
  }
  return part;
}

NamedTensors::Part& NamedTensors::part_of(std::string_view prefix) {
  const auto found = parts_.find(prefix);
  return found == parts_.end() ? parts_.emplace(prefix, Part()).first->second : found->second;
}

void NamedTensors::add(std::vector<NamedTensor> tensors) {
  const std::size_t before = all_.size();
  try {
    for (NamedTensor& tensor : tensors) {
      all_.push_back(std::move(tensor));
      const std::string_view name = all_.back().name;
      if (!positions_.emplace(name, all_.size() - 1).second)
        refuse("parameters", "there is a \"" + std::string(name) + "\" already");
      // A slot's own name, after the '/', has no scopes.
      const std::string_view scopes = name.substr(0, name.find('/'));
      for (std::size_t dot = scopes.find('.'); dot != scopes.npos; dot = scopes.find('.', dot + 1))
        part_of(scopes.substr(0, dot + 1)).positions.push_back(all_.size() - 1);
    }
  } catch (...) {
    shrink(before);
    throw;
  }
}

void NamedTensors::shrink(std::size_t count) noexcept {
  while (all_.size() > count) {
    const auto found = positions_.find(all_.back().name);
    if (found != positions_.end() && found->second == all_.size() - 1) positions_.erase(found);
    all_.pop_back();
  }
  for (auto& [prefix, part] : parts_) {
    while (!part.positions.empty() && part.positions.back() >= count) part.positions.pop_back();
    while (part.tensors.size() > part.positions.size()) part.tensors.pop_back();
  }
}

}  // namespace ebb::detail
